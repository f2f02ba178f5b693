-- Instances, after they were locked.
select i.id, i.ulid, i.definition_id, i.version_id, i.owner_type, i.owner_id, i.owner_scope, i.trigger_type, i.input,
    i.definition_hash, i.created_at, i.updated_at, i.actor_mode, i.trigger_payload, i.trigger_key, i.starter_type,
    i.starter_id, i.idempotency_digest, i.status, i.state, i.result, i.walk, i.closed_reason, i.cancel_reason,
    i.failure_code, i.failure_message, i.failure_params, i.failure_category, i.failed_node_id, i.steps_count,
    i.transitions_count, i.depth, i.labels, i.priority, i.queue, i.next_seq, i.lock_version, i.paused_at,
    i.deadline_at, i.deadline_seconds, i.started_at, i.ended_at
from workflow_instances i where i.id = any(:ids::bigint[])
