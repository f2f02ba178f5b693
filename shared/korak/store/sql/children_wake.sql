-- Make the steps ready whose child has ended. What others hold is left: it is looked at under its instance's lock.
with target as (
    select s.id, s.queue from workflow_waits w join workflow_step_runs s on s.id = w.step_run_id
    where w.event_key = any(:ulids::varchar[]) and w.kind = 'child' and w.status = 'pending' and s.status = 'waiting'
        and s.ready_at is null
    order by s.id for update of s skip locked
)
update workflow_step_runs s set ready_at = :now::timestamptz, sent_at = case when :is_sent::boolean then :now::timestamptz end, sends = 0
from target where s.id = target.id returning s.id, s.queue
