-- Push what undoes visits that have completed, with the record that completes them.
insert into workflow_compensations (instance_id, seq, step_run_id, scope_id, node_id, visit, status, input, state, error,
    created_at, call)
select instance_id, seq, step_run_id, scope_id, node_id, visit, status, input, state, error, created_at, call
from rows(compensation: instance_id bigint, seq bigint, step_run_id bigint, scope_id bigint, node_id varchar,
    visit integer, status varchar, input jsonb, state jsonb, error jsonb, created_at timestamptz, call smallint)
