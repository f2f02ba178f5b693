-- Insert the history of an imported instance.
insert into workflow_events (instance_id, seq, type, node_id, step_run_id, data, created_at)
select instance_id, seq, type, node_id, step_run_id, data, created_at
from rows(event: instance_id bigint, seq bigint, type varchar, node_id varchar, step_run_id bigint, data jsonb,
    created_at timestamptz)
