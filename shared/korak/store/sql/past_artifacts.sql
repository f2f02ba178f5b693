-- What instances that go back keep, each with the first event of the visit that left it; hooks leave things at no place.
select a.instance_id, a.key, min(e.seq) as seq
from workflow_artifacts a
left join workflow_step_runs s on s.instance_id = a.instance_id and s.node_id = a.node_id and s.visit = a.visit
    and s.execution_id = a.execution_id and s.role = 'step'
left join workflow_events e on e.instance_id = a.instance_id and e.step_run_id = s.id
where a.instance_id = any(:ids::bigint[])
group by a.instance_id, a.key
having a.execution_id is null or min(e.seq) is not null
order by a.instance_id, a.key
