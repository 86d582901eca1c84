INSERT INTO acta_minutes (ns, minute, added, claimed, succeeded, failed, cancelled)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (ns, minute) DO UPDATE
SET added = added + excluded.added, claimed = claimed + excluded.claimed, succeeded = succeeded + excluded.succeeded,
    failed = failed + excluded.failed, cancelled = cancelled + excluded.cancelled
