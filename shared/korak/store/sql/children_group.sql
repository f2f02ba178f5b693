-- The runs that were started under a group by steps that stand in an instance's history, in order: those of each node's newest
-- visit of which no rewind has left the first event behind. What the steps tell, not below whom the runs hang: in a fork or a copy
-- steps stand that another instance has run. What isn't there, or is another owner's, is told as well: nobody knows whether it was
-- in the group.
with turns as materialized (
    select e.seq, e.type, e.data from workflow_events e
    where e.instance_id = :instance::bigint and e.type in ('InstanceForked', 'InstanceRewound')
), firsts as (
    select e.step_run_id, min(e.seq) as seq from workflow_events e
    where e.instance_id = :instance::bigint and e.step_run_id is not null
        and exists (select from turns where turns.type = 'InstanceRewound')
    group by e.step_run_id
), told as (
    select s.node_id, s.scope_id, s.visit, s.output as ids,
        to_jsonb(min(firsts.seq) over (partition by s.node_id, s.visit)) as seq
    from workflow_step_runs s left join firsts on firsts.step_run_id = s.id
    where s.instance_id = :instance::bigint and s.node_type = 'start_workflows' and s.role = 'step'
        and (s.input ->> 'group' = :group::varchar or s.input ? 'truncated')
        and jsonb_path_exists(s.output, '$.*[*] ? (@.type() == "string")')
    union all
    select null, null, null, jsonb_build_object('ids', carried -> 'ids'), carried -> 'seq'
    from turns, jsonb_path_query(turns.data, '$.started[*] ? (@.type() == "object")') carried
    where turns.type = 'InstanceForked'
), standing as (
    select told.ids, told.node_id is null as is_carried,
        rank() over (partition by told.node_id, told.scope_id order by told.visit desc) as place
    from told
    where not exists (
        select from turns
        where turns.type = 'InstanceRewound' and to_jsonb(turns.seq) > told.seq
            and jsonb_path_exists(turns.data, '$.seq ? (@ < $first)', jsonb_build_object('first', told.seq))
    )
), started as (
    select distinct jsonb_path_query(ids, '$.*[*] ? (@.type() == "string")') #>> '{}' as ulid from standing
    where is_carried or place = 1
)
select started.ulid, i.id is not null as is_there
from started
join workflow_instances own on own.id = :instance::bigint
left join workflow_instances i on i.ulid = started.ulid and i.owner_scope = own.owner_scope
where i.id is null or (i.trigger_type = 'workflow' and i.trigger_key = :group::varchar)
order by started.ulid
