-- Steps and waits that should have moved long ago: nobody claims them, nothing wakes them, no engine has their type.
with late (instance_id, step_run_id, reason, since) as (
    select s.instance_id, s.id, 'unclaimed', s.ready_at from workflow_step_runs s
    where s.ready_at is not null and s.sent_at is null
        and s.ready_at <= :now::timestamptz - make_interval(secs => :unclaimed::float8)
    union all
    select s.instance_id, s.id, 'unclaimed', s.ready_at from workflow_step_runs s
    where s.sent_at is not null and s.ready_at <= :now::timestamptz - make_interval(secs => :unclaimed::float8)
    union all
    select s.instance_id, s.id, 'no_engine_for_type', coalesce(s.claimed_at, s.created_at) from workflow_step_runs s
    where s.parked_for = 'engine'
        and coalesce(s.claimed_at, s.created_at) <= :now::timestamptz - make_interval(secs => :unserved::float8)
    union all
    select w.instance_id, w.step_run_id, 'wait_overdue', w.due_at from workflow_waits w
    where w.status = 'pending' and w.due_at is not null and w.sent_at is null
        and w.due_at <= :now::timestamptz - make_interval(secs => :overdue::float8)
    union all
    select w.instance_id, w.step_run_id, 'wait_overdue', w.due_at from workflow_waits w
    where w.status = 'pending' and w.sent_at is not null
        and w.due_at <= :now::timestamptz - make_interval(secs => :overdue::float8)
)
select i.id, i.ulid, i.owner_scope, d.key as definition, late.reason, late.since, late.step_run_id, s.node_id, s.node_type
from late
join workflow_instances i on i.id = late.instance_id
join workflow_definitions d on d.id = i.definition_id
left join workflow_step_runs s on s.id = late.step_run_id
where i.paused_at is null and (:owner::varchar is null or i.owner_scope = :owner::varchar)
order by late.since, i.id limit :count::integer
