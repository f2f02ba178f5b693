-- The live attempts of open instances with containers: those of their outermost nodes and of the bodies that run; and those
-- that were asked for by id. What has ended, or is about to begin, isn't looked at, however much of it there is.
with found as (
    select s.id from rows(node: instance_id bigint, node_id varchar)
    join workflow_step_runs s on s.instance_id = node.instance_id and s.node_id = node.node_id
    where s.scope_id is null and s.status in ('queued', 'running', 'waiting')
    union
    select s.id from workflow_scopes c join workflow_step_runs s on s.scope_id = c.id
    where c.instance_id = any(:ids::bigint[]) and c.status = 'running' and s.status in ('queued', 'running', 'waiting')
    union
    select unnest(:closed::bigint[])
)
select s.id, s.instance_id, s.owner_scope, s.node_id, s.node_type, s.type_version, s.visit, s.attempt,
    s.idempotency_key, s.queue, s.created_at, s.status, s.scope_id, s.parent_step_run_id, s.role, s.call,
    s.hook_order, s.outcome,
    case when s.counters is null or s.status <> 'waiting' or s.ready_at is not null then s.input end as input, s.output, s.resume_signal, s.error_code, s.error_message, s.error_params,
    s.error_retryable, s.error_category, s.ulid, s.execution_id, s.retry_of, s.backoff_seconds, s.priority,
    s.ready_at, s.sent_at, s.parked_for, s.engine_id, s.claim_token, s.claimed_at, s.lease_until, s.scheduled_for,
    s.started_at, s.finished_at, s.probe, s.counters
from found cross join lateral (select * from workflow_step_runs s where s.id = found.id limit 1) s
where s.instance_id = any(:ids::bigint[])
