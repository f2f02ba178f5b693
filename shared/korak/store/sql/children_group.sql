-- The runs that were started under a group by steps that stand in an instance's history, in order: those of each node's newest
-- visit. What the steps tell, not below whom the runs hang: in a fork or a copy steps stand that another instance has run. What
-- isn't there, or is another owner's, is told as well: nobody knows whether it was in the group.
with started as (
    select s.input, s.output, rank() over (partition by s.node_id, s.scope_id order by s.visit desc) as place
    from workflow_step_runs s
    where s.instance_id = :instance::bigint and s.node_type = 'start_workflows' and s.role = 'step'
        and (s.input ->> 'group' = :group::varchar or s.input ? 'truncated')
        and jsonb_path_exists(s.output, '$.*[*] ? (@.type() == "string")')
), told as (
    select jsonb_path_query(output, '$.*[*] ? (@.type() == "string")') #>> '{}' as ulid from started where place = 1
    union
    select jsonb_path_query(e.data, '$.started[*].ids[*] ? (@.type() == "string")') #>> '{}' from workflow_events e
    where e.instance_id = :instance::bigint and e.type = 'InstanceForked'
)
select told.ulid, i.id is not null as is_there
from told
join workflow_instances own on own.id = :instance::bigint
left join workflow_instances i on i.ulid = told.ulid and i.owner_scope = own.owner_scope
where i.id is null or (i.trigger_type = 'workflow' and i.trigger_key = :group::varchar)
order by told.ulid
