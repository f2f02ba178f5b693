-- The newest ended visit of each node of instances without containers: what values and handlers of these instances may read.
select distinct on (s.instance_id, s.scope_id, s.node_id) s.instance_id, s.scope_id, s.node_id, s.status, s.outcome, s.output,
    s.error_code, s.error_message, s.error_params, s.attempt
from workflow_step_runs s
where s.instance_id = any(:ids::bigint[]) and s.role = 'step'
    and (s.status = 'completed' or (s.status = 'failed' and s.outcome is not null)) and s.undone_at is null
order by s.instance_id, s.scope_id, s.node_id, s.visit desc, s.attempt desc
