SELECT id, created, state, payload_differs FROM acta.enqueue_many($1, $2::text::json)
