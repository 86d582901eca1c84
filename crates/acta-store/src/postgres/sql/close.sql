-- Waits for every write that is under way, also for those in other people's transactions.
SELECT pg_advisory_xact_lock(1633907809, 1), pg_advisory_xact_lock(1633907809, 2)
