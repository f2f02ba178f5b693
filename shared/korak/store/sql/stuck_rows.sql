-- Steps and waits that should have moved long ago: nobody claims them, nothing wakes them, no engine has their type.
with late (instance_id, step_run_id, reason, since) as materialized (
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
cross join lateral (select * from workflow_instances i where i.id = late.instance_id limit 1) i
cross join lateral (select * from workflow_definitions d where d.id = i.definition_id limit 1) d
left join lateral (select * from workflow_step_runs s where s.id = late.step_run_id limit 1) s on true
where (i.paused_at is null or i.ended_at is not null) and (:owner::varchar is null or i.owner_scope = :owner::varchar)
order by late.since, i.id limit :count::integer
