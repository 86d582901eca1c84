-- An instant that the planner may look at, and a limit that it may not: it follows the index, whatever there is.
SELECT id
FROM {table}
WHERE until_ms IS NOT NULL AND until_ms <= (extract(epoch FROM statement_timestamp()) * 1000)::bigint
ORDER BY until_ms
LIMIT (SELECT $1::bigint)
