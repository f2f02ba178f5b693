-- Nothing is left of a closed engine.
update engines e set held_since = e.closed_at + interval '1 day' where e.id = :id::bigint and e.closed_at is not null
