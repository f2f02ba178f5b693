-- Claim a document: the ledger's unique key decides which of two imports of it makes the instance. The other one waits for its
-- commit. The row lives as long as the instance.
insert into workflow_idempotency_keys (scope, key, definition_id, instance_id, instance_ulid, created_at)
values ('start', :key::varchar, :definition_id::bigint, :instance_id::bigint, :ulid::varchar, :now::timestamptz)
on conflict (scope, key) do nothing
returning instance_ulid
