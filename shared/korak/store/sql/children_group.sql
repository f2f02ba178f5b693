-- The runs that an instance has started under a group's name, in order: those of each node's newest visit.
select found.ulid from (
    select i.ulid, i.id, rank() over (partition by s.node_id, s.scope_id order by s.visit desc) as place
    from workflow_instances i join workflow_step_runs s on s.id = i.parent_step_run_id
    where i.parent_instance_id = :instance::bigint and i.trigger_type = 'workflow' and i.trigger_key = :group::varchar
) found
where found.place = 1 order by found.ulid
