-- Ended attempts, at which bodies that are to be started once more stood.
select s.id, s.instance_id, s.owner_scope, s.node_id, s.node_type, s.type_version, s.visit, s.attempt,
    s.idempotency_key, s.queue, s.created_at, s.status, s.scope_id, s.parent_step_run_id, s.role, s.call,
    s.hook_order, s.outcome,
    s.input, s.output, s.resume_signal, s.error_code, s.error_message, s.error_params,
    s.error_retryable, s.error_category, s.ulid, s.execution_id, s.retry_of, s.backoff_seconds, s.priority,
    s.ready_at, s.sent_at, s.parked_for, s.engine_id, s.claim_token, s.claimed_at, s.lease_until, s.scheduled_for,
    s.started_at, s.finished_at, s.probe, s.counters
from workflow_step_runs s where s.id = any(:ids::bigint[])
