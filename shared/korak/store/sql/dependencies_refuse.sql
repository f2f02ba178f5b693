-- Tell waits that they can't come true, since the runs wait for one another.
with told as (
    insert into workflow_signals (instance_id, step_run_id, wait_id, owner_scope, kind, payload, source_id, created_at)
    select w.instance_id, w.step_run_id, w.id, w.owner_scope, 'ended', jsonb_build_object('cycle', refused.cycle), 'cycle',
        :now::timestamptz
    from rows(refused: wait_id bigint, cycle jsonb) join workflow_waits w on w.id = refused.wait_id
    where w.status in ('pending', 'suspended')
    order by w.instance_id, w.id
    on conflict on constraint wsig_source_unique do nothing
    returning instance_id, step_run_id
), target as (
    select s.id from workflow_step_runs s
    where s.id = any(array(select told.step_run_id from told)) and s.status = 'waiting' and s.ready_at is null
    order by s.id for update skip locked
), woken as (
    update workflow_step_runs s set ready_at = :now::timestamptz, sent_at = case when :is_sent::boolean then :now::timestamptz end, sends = 0
    from target where s.id = target.id returning s.id, s.queue
)
select told.instance_id, woken.id, woken.queue from told left join woken on woken.id = told.step_run_id
