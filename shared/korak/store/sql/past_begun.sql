-- The runs that bodies of instances that go back have started under a group, by each node's newest visit there; and those that a
-- fork knows of from where it came, with the number of the event.
select begun.instance_id, begun.id as step_run_id,
    jsonb_build_object('ids', jsonb_path_query_array(begun.output, '$.*[*] ? (@.type() == "string")')) as told
from (
    select s.instance_id, s.id, s.output,
        rank() over (partition by s.instance_id, s.node_id, s.scope_id order by s.visit desc) as place
    from workflow_step_runs s
    where s.instance_id = any(:ids::bigint[]) and s.scope_id is not null and s.role = 'step'
        and s.node_type = 'start_workflows' and (s.input ? 'group' or s.input ? 'truncated')
        and jsonb_path_exists(s.output, '$.*[*] ? (@.type() == "string")')
) begun
where begun.place = 1
union all
select e.instance_id, null, jsonb_path_query(e.data, '$.started[*]') from workflow_events e
where e.instance_id = any(:ids::bigint[]) and e.type = 'InstanceForked'
