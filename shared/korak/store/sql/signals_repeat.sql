-- Deliveries that nobody took: stamped, at growing distance. A command that lies there is in a hurry, the first time,
-- and so is what other runs tell.
with lost as (
    select s.id, s.instance_id, s.step_run_id, s.kind, s.name, s.sends from workflow_signals s
    where s.taken_at is null and s.buffered_at is null
        and coalesce(s.sent_at, s.created_at) <= :now::timestamptz - make_interval(secs => :soon::float8)
        and (
            coalesce(s.sent_at, s.created_at)
                <= :now::timestamptz - make_interval(secs => least(600, :after::float8 * 2 ^ least(greatest(s.sends - 1, 0), 10)))
            or (s.sends = 0 and s.kind in ('cancel', 'pause', 'resume', 'retry', 'child', 'ended'))
        )
    order by coalesce(s.sent_at, s.created_at) limit :count::integer for update skip locked
), stamped as (
    update workflow_signals s set sent_at = :now::timestamptz, sends = s.sends + 1 from lost where s.id = lost.id
)
select id, instance_id, step_run_id, kind, name, sends from lost order by id
