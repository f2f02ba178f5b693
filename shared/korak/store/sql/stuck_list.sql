-- Open instances that nothing will move any more, each with the reason, the longest stuck first.
with lost as (
    select step.instance_id, step.node_id, 'lease_expired' as reason, least(engine.lease_until, step.lease_until) as since
    from engines engine
    join workflow_step_runs step on step.engine_id = engine.id and step.claimed_at >= engine.held_since
    where step.status = 'running' and (
        engine.closed_at < :late::timestamptz or engine.lease_until < :late::timestamptz
        or step.lease_until < :late::timestamptz
    )
), unclaimed as (
    select step.instance_id, step.node_id, 'unclaimed' as reason, step.ready_at as since
    from workflow_step_runs step
    where step.ready_at is not null and step.sent_at is null and step.ready_at < :late::timestamptz
    union all
    select step.instance_id, step.node_id, 'unclaimed', step.ready_at
    from workflow_step_runs step
    where step.sent_at is not null and step.ready_at < :late::timestamptz
), parked as (
    select step.instance_id, step.node_id, 'no_engine_for_type' as reason, step.created_at as since
    from workflow_step_runs step
    where step.parked_for = 'engine' and step.created_at < :parked::timestamptz
), overdue as (
    select wait.instance_id, null::varchar as node_id, 'wait_overdue' as reason, wait.due_at as since
    from workflow_waits wait
    where wait.status = 'pending' and wait.due_at is not null and wait.sent_at is null and wait.due_at < :late::timestamptz
    union all
    select wait.instance_id, null, 'wait_overdue', wait.due_at
    from workflow_waits wait
    where wait.status = 'pending' and wait.sent_at is not null and wait.due_at < :late::timestamptz
), orphaned as (
    select instance.id as instance_id, null::varchar as node_id, 'orphaned' as reason, instance.updated_at as since
    from workflow_instances instance
    where instance.ended_at is null and instance.updated_at < :late::timestamptz
        and not exists (
            select from workflow_step_runs step
            where step.instance_id = instance.id and step.status in ('queued', 'running')
        )
        and not exists (
            select from workflow_waits wait
            where wait.instance_id = instance.id and wait.status in ('pending', 'suspended')
        )
), found as (
    select * from lost
    union all select * from unclaimed
    union all select * from parked
    union all select * from overdue
    union all select * from orphaned
)
select distinct instance.ulid, definition.key as definition, found.node_id, found.reason, found.since
from found
join workflow_instances instance on instance.id = found.instance_id
join workflow_definitions definition on definition.id = instance.definition_id
where instance.ended_at is null
order by found.since limit :most::bigint
