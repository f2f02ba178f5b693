-- Make the steps ready whose child has ended, each with its run. A step without an id was ready already or is held by others: it may
-- have been looked at before that end was there.
with found as (
    select w.instance_id, w.step_run_id from workflow_waits w
    where w.event_key = any(:ulids::varchar[]) and w.kind = 'child' and w.status = 'pending'
), target as (
    select s.id from workflow_step_runs s
    where s.id = any(array(select found.step_run_id from found)) and s.status = 'waiting' and s.ready_at is null
    order by s.id for update skip locked
), woken as (
    update workflow_step_runs s set ready_at = :now::timestamptz, sent_at = case when :is_sent::boolean then :now::timestamptz end, sends = 0
    from target where s.id = target.id returning s.id, s.queue
)
select found.instance_id, woken.id, woken.queue from found left join woken on woken.id = found.step_run_id
