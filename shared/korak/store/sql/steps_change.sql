-- Whatever else can happen to an attempt. Under its instance's lock.
update workflow_step_runs s set
    status = step.status,
    outcome = step.outcome,
    input = coalesce(step.input, s.input),
    output = coalesce(step.output, s.output),
    resume_signal = coalesce(step.resume_signal, s.resume_signal),
    error_code = step.error_code,
    error_message = step.error_message,
    error_params = step.error_params,
    error_retryable = step.error_retryable,
    error_category = step.error_category,
    ready_at = step.ready_at,
    sent_at = step.sent_at,
    parked_for = step.parked_for,
    engine_id = step.engine_id,
    claim_token = step.claim_token,
    claimed_at = step.claimed_at,
    lease_until = step.lease_until,
    scheduled_for = step.scheduled_for,
    started_at = step.started_at,
    finished_at = step.finished_at,
    probe = step.probe
from rows(step: id bigint, status varchar, outcome varchar, input jsonb, output jsonb,
    resume_signal jsonb, error_code varchar, error_message text, error_params jsonb, error_retryable boolean,
    error_category varchar, ready_at timestamptz, sent_at timestamptz, parked_for varchar, engine_id bigint,
    claim_token varchar, claimed_at timestamptz, lease_until timestamptz, scheduled_for timestamptz,
    started_at timestamptz, finished_at timestamptz, probe varchar)
where s.id = step.id
