SELECT number, name, definition FROM acta_names WHERE name = ?1
