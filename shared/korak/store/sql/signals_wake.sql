-- Make the waiting steps ready that signals and events are for; which signals have one. What others hold is left.
with target as (
    select signal.id as signal, s.id, s.queue
    from rows(signal: id bigint, instance_id bigint, step_run_id bigint, name varchar)
    join workflow_waits w on w.instance_id = signal.instance_id and w.status = 'pending' and w.kind in ('signal', 'event')
        and w.event_key = signal.name and (signal.step_run_id is null or w.step_run_id = signal.step_run_id)
    join workflow_step_runs s on s.id = w.step_run_id and s.status = 'waiting'
    order by s.id for update of s skip locked
), woken as (
    update workflow_step_runs s set ready_at = :now::timestamptz, sent_at = null, sends = 0
    from target where s.id = target.id and s.ready_at is null
)
select signal, queue from target
