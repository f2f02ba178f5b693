-- The open waits of instances.
select w.id, w.instance_id, w.step_run_id, w.owner_scope, w.kind, w.created_at, w.status, w.event_key, w.match,
    w.match_digest, w.correlation, w.mode, w.condition, w.poll_seconds, w.payload, w.outcome, w.looks_back, w.due_at,
    w.is_date, w.remaining, w.sent_at, w.fired_at
from workflow_waits w where w.instance_id = any(:ids::bigint[]) and w.status in ('pending', 'suspended')
