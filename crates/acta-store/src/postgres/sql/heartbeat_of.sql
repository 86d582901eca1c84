SELECT fault, state, fence, holder, lease_expires_at, cancel_requested
FROM acta._heartbeat_of($8::text::json, $1, $2, $3, $4, $5, $6, $7)
