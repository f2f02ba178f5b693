-- What parked steps wait for. Under the locks of their instances and keys, so that who gives room back afterwards sees them.
update workflow_step_runs s set limit_key = parked.limit_key, limit_ceiling = parked.limit_ceiling,
    limit_weight = parked.limit_weight, limit_until = parked.limit_until
from rows(parked: id bigint, limit_key bigint, limit_ceiling integer, limit_weight integer, limit_until timestamptz)
where s.id = parked.id
