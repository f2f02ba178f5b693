-- Insert attempts of an imported instance, with what was undone of them.
insert into workflow_step_runs (id, instance_id, scope_id, parent_step_run_id, owner_scope, node_id, node_type,
    type_version, visit, attempt, role, call, hook_order, status, outcome, input, output, resume_signal, error_code,
    error_message, error_params, error_retryable, error_category, ulid, execution_id, idempotency_key, retry_of,
    backoff_seconds, queue, priority, ready_at, sent_at, parked_for, engine_id, claim_token, claimed_at, lease_until,
    scheduled_for, started_at, finished_at, probe, counters, flow, undone_at, created_at)
select id, instance_id, scope_id, parent_step_run_id, owner_scope, node_id,
    node_type, type_version, visit, attempt, role, call, hook_order,
    status, outcome, input, output, resume_signal, error_code, error_message,
    error_params, error_retryable, error_category, ulid, execution_id,
    idempotency_key, retry_of, backoff_seconds, queue, priority, ready_at,
    sent_at, parked_for, engine_id, claim_token, claimed_at, lease_until,
    scheduled_for, started_at, finished_at, probe, counters, flow, undone_at, created_at
from rows(step: id bigint, instance_id bigint, scope_id bigint, parent_step_run_id bigint, owner_scope varchar,
    node_id varchar, node_type varchar, type_version integer, visit integer, attempt smallint, role varchar,
    call smallint, hook_order integer, status varchar, outcome varchar, input jsonb, output jsonb, resume_signal jsonb,
    error_code varchar, error_message text, error_params jsonb, error_retryable boolean, error_category varchar,
    ulid varchar, execution_id varchar, idempotency_key varchar, retry_of varchar, backoff_seconds double precision,
    queue varchar, priority smallint, ready_at timestamptz, sent_at timestamptz, parked_for varchar, engine_id bigint,
    claim_token varchar, claimed_at timestamptz, lease_until timestamptz, scheduled_for timestamptz,
    started_at timestamptz, finished_at timestamptz, probe varchar, counters jsonb,
    flow jsonb, undone_at timestamptz, created_at timestamptz)
