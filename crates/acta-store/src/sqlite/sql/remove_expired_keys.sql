DELETE FROM acta_keys
WHERE (ns, key) IN (SELECT k.ns, k.key FROM acta_keys k INDEXED BY acta_keys_expired
                    WHERE k.ns = ?1 AND k.expires_at IS NOT NULL AND k.expires_at <= ?2
                    ORDER BY k.expires_at, k.key
                    LIMIT ?3)
