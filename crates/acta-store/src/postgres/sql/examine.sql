SELECT current_setting('server_version_num')::integer, current_setting('synchronous_commit'), current_setting('fsync'),
       coalesce((SELECT max(extract(epoch FROM clock_timestamp() - a.xact_start))::bigint
                 FROM pg_stat_activity a
                 WHERE a.datname = current_database() AND a.backend_type = 'client backend'), 0)
