-- Write what was decided for many instances, each only if it still stands where it was decided from: steps that are
-- completed, the next ones that run where they were recorded, history. What else there is follows in `applying`.
-- Takes no look: an equal lock_version says that every row of the snapshot is as it was, an equal version of the holds
-- that those are which were asked. `fresh` were inserted just before.
with moved as (
    update workflow_instances i set
        status = change.status,
        state = coalesce(change.state, i.state),
        walk = coalesce(change.walk, i.walk),
        result = case when change.ended_at is null then coalesce(change.result, i.result) else change.result end,
        steps_count = change.steps_count,
        transitions_count = change.transitions_count,
        next_seq = change.next_seq,
        closed_reason = change.closed_reason,
        failure_code = change.failure_code,
        ended_at = change.ended_at,
        updated_at = change.updated_at,
        lock_version = i.lock_version + 1
    from rows(change: id bigint, expected integer, status varchar, state jsonb, walk jsonb, result jsonb,
        steps_count integer, transitions_count integer, next_seq bigint, closed_reason varchar, failure_code varchar,
        ended_at timestamptz, updated_at timestamptz, holds bigint)
    where i.id = change.id and i.lock_version = change.expected
        and (change.holds is null or change.holds = (select version from hold_state))
    returning i.id
), standing as (
    select id from moved union all select unnest(:fresh::bigint[])
), closed as (
    update workflow_step_runs s set
        status = 'completed',
        outcome = step.outcome,
        output = step.output,
        finished_at = step.finished_at
    from rows(step: id bigint, instance_id bigint, outcome varchar, output jsonb, finished_at timestamptz)
    where s.id = step.id and (step.instance_id in (select id from standing)) is true
), begun as (
    insert into workflow_step_runs (id, instance_id, scope_id, parent_step_run_id, owner_scope, node_id, node_type, type_version, visit, attempt, status,
        input, ulid, execution_id, idempotency_key, queue, priority, engine_id, claim_token, claimed_at, lease_until,
        started_at, created_at)
    select begun.id, begun.instance_id, begun.scope_id, begun.parent_step_run_id, begun.owner_scope, begun.node_id, begun.node_type, begun.type_version, begun.visit, 1,
        'running', begun.input, begun.ulid, begun.ulid, begun.idempotency_key, begun.queue, begun.priority, begun.engine_id,
        begun.claim_token, begun.created_at, begun.lease_until, begun.created_at, begun.created_at
    from rows(begun: id bigint, instance_id bigint, scope_id bigint, parent_step_run_id bigint, owner_scope varchar, node_id varchar, node_type varchar,
        type_version integer, visit integer, input jsonb, ulid varchar, idempotency_key varchar, queue varchar,
        priority smallint, engine_id bigint, claim_token varchar, lease_until timestamptz, created_at timestamptz)
    where (begun.instance_id in (select id from standing)) is true
), told as (
    insert into workflow_events (instance_id, seq, type, node_id, step_run_id, data, created_at)
    select event.instance_id, event.seq, event.type, event.node_id, event.step_run_id, event.data, event.created_at
    from rows(event: instance_id bigint, seq bigint, type varchar, node_id varchar, step_run_id bigint, data jsonb,
        created_at timestamptz)
    where (event.instance_id in (select id from standing)) is true
)
select id from moved
