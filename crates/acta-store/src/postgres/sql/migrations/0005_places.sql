-- Who settles shows where the claim had left the row, so that nothing is looked up by a digest.
ALTER TABLE acta.standing DROP COLUMN id_digest;
