-- Insert the runs that others start, below their parents, which are locked; the root is the parent's, or the parent itself.
insert into workflow_instances (id, ulid, definition_id, version_id, owner_type, owner_id, owner_scope, trigger_type,
    trigger_key, trigger_payload, input, state, idempotency_digest, status, actor_mode, starter_type, starter_id, labels,
    priority, queue, definition_hash, depth, deadline_at, deadline_seconds, started_at, created_at, updated_at, result, walk, closed_reason,
    failure_code, failure_message, failure_params, failure_category, failed_node_id, steps_count, transitions_count, next_seq,
    lock_version, ended_at, paused_at, parent_instance_id, parent_step_run_id, root_instance_id)
select child.id, child.ulid, child.definition_id, child.version_id, child.owner_type, child.owner_id, child.owner_scope,
    child.trigger_type, child.trigger_key, child.trigger_payload, child.input, child.state, child.idempotency_digest,
    child.status, child.actor_mode, child.starter_type, child.starter_id, child.labels, child.priority, child.queue,
    child.definition_hash, child.depth, child.deadline_at, child.deadline_seconds, child.started_at, child.created_at,
    child.updated_at, child.result, child.walk, child.closed_reason, child.failure_code, child.failure_message,
    child.failure_params, child.failure_category, child.failed_node_id, child.steps_count, child.transitions_count,
    child.next_seq, child.lock_version, child.ended_at, child.paused_at, parent.id, child.parent_step_run_id,
    coalesce(parent.root_instance_id, parent.id)
from rows(child: id bigint, ulid varchar, definition_id bigint, version_id bigint, owner_type varchar, owner_id varchar,
    owner_scope varchar, trigger_type varchar, trigger_key varchar, trigger_payload jsonb, input jsonb, state jsonb,
    idempotency_digest varchar, actor_mode varchar, starter_type varchar, starter_id varchar, labels jsonb,
    priority smallint, queue varchar, definition_hash varchar, depth smallint, deadline_at timestamptz,
    deadline_seconds double precision, started_at timestamptz, created_at timestamptz, updated_at timestamptz,
    status varchar, result jsonb, walk jsonb, closed_reason varchar, failure_code varchar, failure_message text,
    failure_params jsonb, failure_category varchar, failed_node_id varchar, steps_count integer, transitions_count integer,
    next_seq bigint, lock_version integer, ended_at timestamptz,
    paused_at timestamptz, parent_instance_id bigint, parent_step_run_id bigint)
join workflow_instances parent on parent.id = child.parent_instance_id
