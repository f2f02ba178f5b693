-- Take attempts back that an instance was sent back over, and keep the result as it stood then. Under its lock.
with undone as (
    update workflow_step_runs s set undone_at = undone.at
    from rows(undone: id bigint, at timestamptz) where s.id = undone.id
)
update workflow_instances i set result = kept.result
from rows(kept: id bigint, result jsonb) where i.id = kept.id
