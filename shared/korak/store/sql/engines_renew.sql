-- Extend an engine's lease, unless it was closed.
update engines set lease_until = :lease_until::timestamptz, held_since = :held_since::timestamptz, seen_at = :now::timestamptz
where id = :id::bigint and closed_at is null
returning id
