-- Let forks have what the runs that they come from keep, as theirs. Under the locks of those runs.
insert into workflow_artifacts (instance_id, key, kind, content, size, metadata, node_id, visit, execution_id,
    created_at, updated_at)
select carried.instance_id, a.key, a.kind, a.content, a.size, a.metadata, s.node_id, s.visit, s.execution_id,
    a.created_at, a.updated_at
from rows(carried: source varchar, key varchar, instance_id bigint, step_run_id bigint)
join workflow_instances i on i.ulid = carried.source
join workflow_artifacts a on a.instance_id = i.id and a.key = carried.key
left join workflow_step_runs s on s.id = carried.step_run_id
