UPDATE {table}_source SET relay = NULL, until_ms = NULL WHERE relay = $1
