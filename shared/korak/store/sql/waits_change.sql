-- Fire, cancel, suspend or move waits. Under the instance's lock.
update workflow_waits w set
    status = wait.status,
    payload = coalesce(wait.payload, w.payload),
    due_at = wait.due_at,
    remaining = wait.remaining,
    sent_at = wait.sent_at,
    fired_at = wait.fired_at
from rows(wait: id bigint, status varchar, payload jsonb, due_at timestamptz, remaining double precision,
    sent_at timestamptz, fired_at timestamptz)
where w.id = wait.id
