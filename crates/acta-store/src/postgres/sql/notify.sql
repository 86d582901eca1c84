SELECT pg_notify('acta', p) FROM unnest($1::text[]) p
