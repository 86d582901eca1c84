SELECT id FROM {table}_source
