-- Who waits for whom, before anybody looks.
insert into workflow_dependencies (wait_id, place, instance_id, step_run_id, awaited_id, is_needed, created_at)
select dependency.wait_id, dependency.place, dependency.instance_id, dependency.step_run_id, i.id, dependency.is_needed,
    dependency.created_at
from rows(dependency: wait_id bigint, place integer, instance_id bigint, step_run_id bigint, ulid varchar, is_needed boolean,
    created_at timestamptz)
join workflow_instances i on i.ulid = dependency.ulid
