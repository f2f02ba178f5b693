-- Insert the scopes of a container's bodies: to be started, or begun at once. Under the instance's lock.
insert into workflow_scopes (id, instance_id, step_run_id, parent_scope_id, name, item_index, item, status, state, walk,
    outcome, output, error, finish_order, created_at, ended_at, halted_step_run_id)
select id, instance_id, step_run_id, parent_scope_id, name, item_index, item, status, state, walk, outcome, output, error,
    finish_order, created_at, ended_at, halted_step_run_id
from rows(scope: id bigint, instance_id bigint, step_run_id bigint, parent_scope_id bigint, name varchar,
    item_index integer, item jsonb, status varchar, state jsonb, walk jsonb, outcome varchar, output jsonb, error jsonb,
    finish_order integer, created_at timestamptz, ended_at timestamptz, halted_step_run_id bigint)
