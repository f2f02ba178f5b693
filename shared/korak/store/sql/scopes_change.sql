-- Whatever can happen to a scope. Under the instance's lock.
update workflow_scopes c set
    status = scope.status,
    state = scope.state,
    walk = scope.walk,
    outcome = scope.outcome,
    output = scope.output,
    error = scope.error,
    finish_order = scope.finish_order,
    ended_at = scope.ended_at,
    halted_step_run_id = scope.halted_step_run_id
from rows(scope: id bigint, status varchar, state jsonb, walk jsonb, outcome varchar, output jsonb, error jsonb,
    finish_order integer, ended_at timestamptz, halted_step_run_id bigint)
where c.id = scope.id
