-- The scopes of instances that a decision may look at: bodies that live; some that are to be started, a page where their
-- container was made ready for them; all of a small container, or of one that is to be merged; where a failed run stood.
with containers as materialized (
    select s.id, (s.counters->>'next_index')::integer as next_index,
        s.counters->>'verdict' is not null or (s.counters->>'total')::integer <= :small::integer as is_whole,
        case when s.ready_at is null then 20 else :page::integer end as room
    from workflow_step_runs s
    where s.instance_id = any(:ids::bigint[]) and s.status = 'waiting' and s.counters is not null
), halted as materialized (
    select distinct s.scope_id as id from workflow_step_runs s join workflow_instances i on i.id = s.instance_id
    where s.instance_id = any(:ids::bigint[]) and i.status = 'failed' and s.scope_id is not null
        and s.status in ('failed', 'cancelled') and s.outcome is null and s.role = 'step'
), found as (
    select c.id from workflow_scopes c where c.instance_id = any(:ids::bigint[]) and c.status = 'running'
    union
    select c.id from containers join workflow_scopes c on c.step_run_id = containers.id where containers.is_whole
    union
    select pending.id from containers cross join lateral (
        select c.id from workflow_scopes c
        where c.step_run_id = containers.id and c.status = 'pending' and c.item_index >= containers.next_index
        order by c.item_index limit containers.room
    ) pending
    union
    select c.id from halted join workflow_scopes c on c.id = halted.id where c.status in ('failed', 'cancelled')
)
select c.id, c.instance_id, c.step_run_id, c.created_at, c.parent_scope_id, c.name, c.item_index, c.item, c.status, c.state,
    c.walk, c.outcome, c.output, c.error, c.finish_order, c.ended_at
from found join workflow_scopes c on c.id = found.id
