-- Set by a retry alone, until the body goes on; null, which takes no room, for everything else.
alter table workflow_scopes add column halted_step_run_id bigint;
