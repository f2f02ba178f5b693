-- Why an instance can't be carried elsewhere now: what is between it and other runs.
select 'it waits for other runs, or for a task' as why where exists (
    select from workflow_waits w where w.instance_id = :id::bigint and w.status in ('pending', 'suspended')
        and w.kind in ('child', 'workflows', 'task'))
union all
select 'runs that it has started are still open' where exists (
    select from workflow_instances i where i.id = :id::bigint and i.ended_at is null and exists (
        select from workflow_instances child where child.parent_instance_id = i.id and child.ended_at is null))
union all
select 'a step of it tries again what a run that it has started failed at' where exists (
    select from workflow_step_runs s where s.instance_id = :id::bigint and s.status in ('queued', 'running', 'waiting')
        and s.resume_signal ->> 'kind' = 'child')
union all
select 'another run waits for it' where exists (
    select from workflow_instances i where i.id = :id::bigint and i.ended_at is null and (
        exists (select from workflow_waits w where w.kind = 'child' and w.event_key = :ulid::varchar
            and w.status in ('pending', 'suspended'))
        or exists (select from workflow_dependencies d where d.awaited_id = i.id)))
union all
select 'it waits until runs that it has started have cleaned up' where exists (
    select from workflow_instances i where i.id = :id::bigint
        and jsonb_array_length(coalesce(nullif(i.walk #> '{cleaning,children}', 'null'), '[]')) > 0)
limit 1
