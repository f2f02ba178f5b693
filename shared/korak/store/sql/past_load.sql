-- What moved instances from one place to the next, in order, with the attempts that it is about; for a fact that goes back.
select e.instance_id as of_instance, e.seq, e.type, e.data, s.*
from workflow_events e left join workflow_step_runs s on s.id = e.step_run_id
where e.instance_id = any(:ids::bigint[]) and e.type = any(:types::varchar[])
    and (e.step_run_id is null or (s.scope_id is null and s.role = 'step'))
order by e.instance_id, e.seq
