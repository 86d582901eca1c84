SELECT relay, until_ms, since_ms, {now} FROM {table}_source
