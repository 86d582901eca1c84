-- Word of a change is nothing that has to survive a crash.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('acta', p) FROM unnest($1::text[]) p
