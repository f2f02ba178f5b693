-- A failed container is tried again: its scopes go on with the new attempt, what hasn't succeeded anew. Under the lock.
update workflow_scopes c set
    step_run_id = adopted.after,
    status = case c.status when 'completed' then 'completed' else 'pending' end,
    state = case c.status when 'completed' then c.state end,
    walk = case c.status when 'completed' then c.walk end,
    outcome = case c.status when 'completed' then c.outcome end,
    output = case c.status when 'completed' then c.output end,
    error = null,
    finish_order = case c.status when 'completed' then c.finish_order end,
    ended_at = case c.status when 'completed' then c.ended_at end
from rows(adopted: before bigint, after bigint)
where c.step_run_id = adopted.before
