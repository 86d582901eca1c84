-- Whoever was let use the ledger may use what is new in it.
DO $$
DECLARE
    role name;
BEGIN
    FOR role IN SELECT DISTINCT pg_get_userbyid(a.grantee) FROM pg_catalog.pg_namespace n, aclexplode(n.nspacl) a
                WHERE n.nspname = 'acta' AND a.privilege_type = 'USAGE' AND a.grantee NOT IN (0, n.nspowner)
    LOOP
        PERFORM acta.grant_to(role);
    END LOOP;
END $$;
