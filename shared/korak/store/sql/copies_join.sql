-- Hang an imported instance below the one that had started it, where that is there too. The parent can't be deleted meanwhile.
with parent as (
    select p.id, p.root_instance_id from workflow_instances p
    where p.ulid = :parent::varchar and p.owner_scope = :owner::varchar for key share
)
update workflow_instances i set
    parent_instance_id = parent.id,
    parent_step_run_id = (
        select s.id from workflow_step_runs s where s.instance_id = parent.id and s.ulid = :step::varchar limit 1),
    root_instance_id = coalesce(parent.root_instance_id, parent.id)
from parent where i.id = :id::bigint
