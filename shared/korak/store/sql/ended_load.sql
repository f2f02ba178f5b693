-- The newest ended visit of each node that values of its graph read.
select distinct on (s.instance_id, s.scope_id, s.node_id) s.instance_id, s.scope_id, s.node_id, s.status, s.outcome, s.output,
    s.error_code, s.error_message, s.attempt
from rows(pair: instance_id bigint, node_id varchar)
join workflow_step_runs s on s.instance_id = pair.instance_id and s.node_id = pair.node_id
where s.role = 'step' and (s.status = 'completed' or (s.status = 'failed' and s.outcome is not null))
order by s.instance_id, s.scope_id, s.node_id, s.visit desc, s.attempt desc
