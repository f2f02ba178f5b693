-- What instances that go back keep, with the attempts of the visit that left it; hooks leave things at no place.
select a.instance_id, a.key, a.execution_id is null as is_from_outside,
    array(select s.id from workflow_step_runs s
        where s.instance_id = a.instance_id and s.node_id = a.node_id and s.visit = a.visit
            and s.execution_id = a.execution_id and s.role = 'step') as attempts
from workflow_artifacts a
where a.instance_id = any(:ids::bigint[])
order by a.instance_id, a.key
