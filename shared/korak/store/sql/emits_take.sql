-- Take an event to match it, unless somebody else does.
select e.id, e.owner_scope, e.name, e.payload, e.source_id, e.sender from workflow_emits e
where e.id = :id::bigint and e.matched_at is null for no key update skip locked
