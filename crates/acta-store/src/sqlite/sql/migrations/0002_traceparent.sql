-- The trace that a job belongs to.
ALTER TABLE acta_jobs ADD COLUMN traceparent TEXT;
