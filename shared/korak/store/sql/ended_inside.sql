-- The newest ended visit of each outermost node and of each node in these scopes: what may be read inside containers.
with found as (
    select s.id from rows(node: instance_id bigint, node_id varchar)
    join workflow_step_runs s on s.instance_id = node.instance_id and s.node_id = node.node_id
    where s.scope_id is null
    union
    select s.id from workflow_step_runs s where s.scope_id = any(:scopes::bigint[])
)
select distinct on (s.instance_id, s.scope_id, s.node_id) s.instance_id, s.scope_id, s.node_id, s.status, s.outcome, s.output,
    s.error_code, s.error_message, s.error_params, s.attempt
from found cross join lateral (select * from workflow_step_runs s where s.id = found.id limit 1) s
where s.role = 'step' and (s.status = 'completed' or (s.status = 'failed' and s.outcome is not null)) and s.undone_at is null
order by s.instance_id, s.scope_id, s.node_id, s.visit desc, s.attempt desc
