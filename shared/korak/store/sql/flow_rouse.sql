-- Make parked steps ready, each sent right after the commit or left to the releaser. What others hold is left: whoever
-- holds it decides about it. concat keeps the planner, who may think it tiny, from the partial index.
with standing as (
    select s.id, step.sent_at from rows(step: id bigint, sent_at timestamptz)
    join workflow_step_runs s on s.id = step.id
    where concat(s.parked_for) = 'limit' order by s.id for update of s skip locked
)
update workflow_step_runs s set parked_for = null, ready_at = :now::timestamptz, sent_at = standing.sent_at, sends = 0
from standing where s.id = standing.id returning s.id
