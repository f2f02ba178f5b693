-- Tell waits for other runs what has ended of them: these waits, after they were committed, and those that are for these runs.
-- What was told before is told no second time. Of a told step that was ready already or is held by others only the run is given:
-- it may have been looked at before that end was there.
with looked as (
    select d.wait_id, d.place, d.instance_id, d.step_run_id, d.awaited_id
    from workflow_dependencies d where d.wait_id = any(:waits::bigint[])
    union
    select d.wait_id, d.place, d.instance_id, d.step_run_id, d.awaited_id
    from workflow_dependencies d where d.awaited_id = any(:awaited::bigint[])
), ended as (
    select looked.wait_id, looked.place, looked.instance_id, looked.step_run_id, i.ulid, i.status, i.ended_at, i.owner_scope
    from looked join workflow_instances i on i.id = looked.awaited_id
    where i.ended_at is not null
), told as (
    insert into workflow_signals (instance_id, step_run_id, wait_id, owner_scope, kind, payload, source_id, created_at)
    select ended.instance_id, ended.step_run_id, ended.wait_id, ended.owner_scope, 'ended',
        jsonb_build_object('instance', ended.ulid, 'status', ended.status),
        ended.ulid || '@' || (extract(epoch from ended.ended_at) * 1000000)::bigint, :now::timestamptz
    from ended order by ended.instance_id, ended.wait_id, ended.place
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
select distinct told.instance_id, woken.id, woken.queue from told left join woken on woken.id = told.step_run_id
