-- An engine is gone.
update engines set closed_at = :now::timestamptz, close_reason = :reason::varchar
where id = :id::bigint and closed_at is null
