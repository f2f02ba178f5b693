-- What became of an event that was emitted before.
select e.id, e.matched, e.matched_at, e.expires_at, e.created_at from workflow_emits e
where e.owner_scope = :owner_scope::varchar and e.name = :name::varchar and e.source_id = :source_id::varchar
