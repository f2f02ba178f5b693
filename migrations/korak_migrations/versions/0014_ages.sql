-- What goes first is told by age: the highest priority, then the oldest. Ids come in blocks, one of each process, and only
-- break ties. `created_at` never changes, so updates stay HOT.
drop index wstep_ready_idx;
create index wstep_ready_idx on workflow_step_runs (queue, owner_scope, priority desc, created_at, id)
    where ready_at is not null and sent_at is null;
drop index wstep_flow_idx;
create index wstep_flow_idx on workflow_step_runs (queue, owner_scope, (flow ->> 0), priority desc, created_at, id)
    where ready_at is not null and sent_at is null and flow is not null;
drop index wstep_limit_idx;
create index wstep_limit_idx on workflow_step_runs (limit_key, priority desc, created_at, id) where parked_for = 'limit';
drop index wstep_parked_idx;
create index wstep_parked_idx on workflow_step_runs (parked_for, node_type, priority desc, created_at, id)
    where parked_for is not null;
create index wstep_held_idx on workflow_step_runs (priority desc, created_at, id) where parked_for = 'hold';
