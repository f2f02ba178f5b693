-- Waits whose due time was told to nobody: the step isn't ready any more and still stands as it did. Ready again.
with lost as (
    select w.id, w.step_run_id, s.queue
    from workflow_waits w join workflow_step_runs s on s.id = w.step_run_id
    where w.status = 'pending' and w.sent_at is not null
        and w.sent_at <= :now::timestamptz - make_interval(secs => :after::float8)
        and w.sent_at <= :now::timestamptz - make_interval(secs => least(600, :after::float8 * 2 ^ least(w.sends - 1, 10)))
        and s.ready_at is null and s.parked_for is null
        and s.status = case w.kind when 'retry' then 'queued' else 'waiting' end
    order by w.sent_at limit :count::integer for update of w, s skip locked
), stamped as (
    update workflow_waits w set sent_at = :now::timestamptz, sends = w.sends + 1 from lost where w.id = lost.id
), woken as (
    update workflow_step_runs s set ready_at = :now::timestamptz, sent_at = null, sends = 0
    from lost where s.id = lost.step_run_id
)
select queue from lost
