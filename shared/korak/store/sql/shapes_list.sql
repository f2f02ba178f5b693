-- Which sets of paths waits for these events match on.
select s.paths from event_shapes s where s.owner_scope = :owner_scope::varchar and s.name = :name::varchar
