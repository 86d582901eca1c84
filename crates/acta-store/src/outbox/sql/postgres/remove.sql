-- By its message, too: a table that was emptied meanwhile may have given its number to another row.
DELETE FROM {table} WHERE {free 1} AND message = ANY ($2::text[])
