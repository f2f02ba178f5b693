-- Keep failures, with what became of each.
insert into workflow_failures (instance_id, step_run_id, node_id, source, category, propagation, non_retryable, handled,
    code, type, message, params, trace, created_at)
select instance_id, step_run_id, node_id, source, category, propagation, non_retryable, handled, code, type, message,
    params, trace, created_at
from rows(failure: instance_id bigint, step_run_id bigint, node_id varchar, source varchar, category varchar,
    propagation varchar, non_retryable boolean, handled boolean, code varchar, type varchar, message text, params jsonb,
    trace text, created_at timestamptz)
