-- Insert new instances as they stand after their first walk; the rows below them follow in the same transaction, by `record`.
insert into workflow_instances (id, ulid, definition_id, version_id, owner_type, owner_id, owner_scope, trigger_type,
    trigger_key, trigger_payload, input, state, idempotency_digest, business_id, run_number, status, actor_mode, starter_type, starter_id, labels,
    priority, queue, definition_hash, depth, deadline_at, deadline_seconds, started_at, created_at, updated_at, result, walk, closed_reason,
    failure_code, failure_message, failure_params, failure_category, failed_node_id, steps_count, transitions_count, next_seq,
    lock_version, ended_at)
select id, ulid, definition_id, version_id, owner_type, owner_id, owner_scope, trigger_type, trigger_key, trigger_payload,
    input, state, idempotency_digest, business_id, run_number, status, actor_mode, starter_type, starter_id, labels, priority, queue,
    definition_hash, depth, deadline_at, deadline_seconds, started_at, created_at, updated_at,
    result, walk, closed_reason, failure_code, failure_message, failure_params, failure_category, failed_node_id, steps_count,
    transitions_count, next_seq, lock_version, ended_at
from rows(instance: id bigint, ulid varchar, definition_id bigint, version_id bigint, owner_type varchar, owner_id varchar,
    owner_scope varchar, trigger_type varchar, trigger_key varchar, trigger_payload jsonb, input jsonb, state jsonb,
    idempotency_digest varchar, business_id varchar, run_number integer, actor_mode varchar, starter_type varchar, starter_id varchar, labels jsonb,
    priority smallint, queue varchar, definition_hash varchar, depth smallint, deadline_at timestamptz,
    deadline_seconds double precision, started_at timestamptz, created_at timestamptz, updated_at timestamptz,
    status varchar, result jsonb, walk jsonb, closed_reason varchar, failure_code varchar, failure_message text,
    failure_params jsonb, failure_category varchar, failed_node_id varchar, steps_count integer, transitions_count integer,
    next_seq bigint, lock_version integer, ended_at timestamptz)
