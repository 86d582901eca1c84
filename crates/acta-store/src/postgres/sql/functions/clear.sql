-- The functions of an earlier release: their arguments and answers may have changed, and what they depend on.
DO $$
DECLARE
    old regprocedure;
BEGIN
    FOR old IN SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'acta'::regnamespace LOOP
        EXECUTE format('DROP FUNCTION %s', old);
    END LOOP;
END $$;
