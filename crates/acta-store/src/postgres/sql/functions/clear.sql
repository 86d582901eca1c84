-- The functions of an earlier release, but for those that programs call: their arguments and answers may have changed.
DO $$
DECLARE
    old regprocedure;
BEGIN
    FOR old IN SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'acta'::regnamespace AND p.proname ~ '^_' LOOP
        EXECUTE format('DROP FUNCTION %s', old);
    END LOOP;
END $$;
