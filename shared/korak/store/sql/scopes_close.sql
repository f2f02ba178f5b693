-- Their containers have ended: what is open of them is cancelled. Under the instance's lock.
update workflow_scopes c set status = 'cancelled', ended_at = closed.ended_at
from rows(closed: step_run_id bigint, ended_at timestamptz)
where c.step_run_id = closed.step_run_id and c.status in ('pending', 'running')
