-- The live attempts of instances, the failed ones at the node where each that has failed did, and ended ones that were asked
-- for by id. A container that has nothing to expand leaves its items where they are.
select s.id, s.instance_id, s.owner_scope, s.node_id, s.node_type, s.type_version, s.visit, s.attempt,
    s.idempotency_key, s.queue, s.created_at, s.status, s.scope_id, s.parent_step_run_id, s.role, s.call,
    s.hook_order, s.outcome,
    case when s.counters is null or s.status <> 'waiting' or s.ready_at is not null then s.input end as input, s.output, s.resume_signal, s.error_code, s.error_message, s.error_params,
    s.error_retryable, s.error_category, s.ulid, s.execution_id, s.retry_of, s.backoff_seconds, s.priority,
    s.ready_at, s.sent_at, s.parked_for, s.engine_id, s.claim_token, s.claimed_at, s.lease_until, s.scheduled_for,
    s.started_at, s.finished_at, s.probe, s.counters
from workflow_step_runs s where s.instance_id = any(:ids::bigint[])
    and (s.status in ('queued', 'running', 'waiting') or s.id = any(:closed::bigint[])
        or (s.status in ('failed', 'cancelled') and s.outcome is null and s.role = 'step' and exists (
            select from workflow_instances i where i.id = s.instance_id and i.status = 'failed' and i.failed_node_id = s.node_id
                and (s.status = 'failed' or i.closed_reason = 'deadline'))))
