-- The start keys of new children: they hang on the parent, and live as long as it does (ID-5).
insert into workflow_idempotency_keys (scope, key, definition_id, instance_id, parent_instance_id, instance_ulid, created_at)
select 'start', idempotency_digest, definition_id, id, parent_instance_id, ulid, created_at
from rows(child: idempotency_digest varchar, definition_id bigint, id bigint, parent_instance_id bigint, ulid varchar,
    created_at timestamptz)
