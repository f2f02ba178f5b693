-- Due waits of some kinds, oldest first: stamped, and their steps made ready. What others hold is left for later.
with due as (
    select w.id, w.kind, w.due_at, w.step_run_id, s.queue
    from workflow_waits w join workflow_step_runs s on s.id = w.step_run_id
    where w.status = 'pending' and w.due_at is not null and w.sent_at is null and w.due_at <= :now::timestamptz
        and (w.kind = 'condition') = :is_condition::boolean
    order by w.due_at limit :count::integer for update of w, s skip locked
), stamped as (
    update workflow_waits w set sent_at = :now::timestamptz, sends = 1 from due where w.id = due.id
), woken as (
    update workflow_step_runs s set ready_at = :now::timestamptz, sent_at = null, sends = 0
    from due where s.id = due.step_run_id and s.ready_at is null and s.parked_for is null
        and s.status = case due.kind when 'retry' then 'queued' else 'waiting' end
)
select kind, due_at, queue from due
