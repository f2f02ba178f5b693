-- The runs that bodies of instances that go back have started under a group, at the first event of each node's newest visit there;
-- and those that a fork knows of from where it came.
select begun.instance_id, jsonb_build_object(
    'seq', (select min(e.seq) from workflow_events e
        where e.instance_id = begun.instance_id and e.step_run_id = begun.id),
    'ids', jsonb_path_query_array(begun.output, '$.*[*] ? (@.type() == "string")')) as told
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
select e.instance_id, jsonb_path_query(e.data, '$.started[*]') from workflow_events e
where e.instance_id = any(:ids::bigint[]) and e.type = 'InstanceForked'
