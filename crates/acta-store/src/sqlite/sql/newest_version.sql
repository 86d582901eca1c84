SELECT max(version) FROM acta_migrations
