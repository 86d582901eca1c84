-- What PostgreSQL keeps as an expression of a table it reads anew from its text at every statement that writes there, which cost
-- more than the write of a single job. So the instant is written by whoever writes the row, and of the checks those stay that no
-- other constraint makes.
ALTER TABLE acta.standing ALTER COLUMN due_at DROP EXPRESSION;
ALTER TABLE acta.standing DROP CONSTRAINT standing_is_sound;
-- A lease goes together with claimed and running, an end with the final states.
ALTER TABLE acta.standing ADD CONSTRAINT standing_is_sound CHECK (
    (lease_expires_at IS NULL) = (state <> 3 AND state <> 4) AND (finished_at IS NULL) = (state < 6));
-- A digest of the id: a settle that shows another one looks at the id itself, which stands in another table.
ALTER TABLE acta.standing ADD COLUMN id_digest bigint;
-- Namespaces are never removed.
ALTER TABLE acta.lanes DROP CONSTRAINT lanes_ns_fkey;
