-- Insert what was addressed to an imported instance, taken or not.
insert into workflow_signals (instance_id, step_run_id, wait_id, owner_scope, kind, name, payload, source_id, sender,
    buffered_at, taken_at, discarded_at, created_at)
select instance_id, step_run_id, wait_id, owner_scope, kind, name, payload, source_id, sender, buffered_at, taken_at,
    discarded_at, created_at
from rows(signal: instance_id bigint, step_run_id bigint, wait_id bigint, owner_scope varchar, kind varchar, name varchar,
    payload jsonb, source_id varchar, sender jsonb, buffered_at timestamptz, taken_at timestamptz, discarded_at timestamptz,
    created_at timestamptz)
