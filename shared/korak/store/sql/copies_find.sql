-- The instance that a document has made.
select k.instance_ulid from workflow_idempotency_keys k where k.scope = 'start' and k.key = :key::varchar
