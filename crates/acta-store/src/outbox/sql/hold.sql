-- Rows may have arrived since this relay took over from another one, or since it saw that none was left.
UPDATE {table}_source
SET since_ms = CASE WHEN since_ms IS NULL OR ($3 = 1 AND relay = $1) THEN {now} ELSE since_ms END,
    relay = $1, until_ms = {now} + $2
WHERE relay IS NULL OR relay = $1 OR until_ms <= {now}
