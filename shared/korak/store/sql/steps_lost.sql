-- Steps that an engine has claimed in a span of time and that are lost: running, or cancelled while they ran and not
-- cleaned up after since. Of an engine that is closed all of them, else those whose own lease is over.
select s.id, s.instance_id, s.claim_token, s.claimed_at from workflow_step_runs s
where s.engine_id = :engine::bigint and s.claimed_at >= :since::timestamptz and s.claimed_at < :until::timestamptz
    and (s.claimed_at, s.id) > (:since::timestamptz, :after::bigint)
    and (:is_closed::boolean or s.lease_until <= :now::timestamptz)
    and (
        s.status = 'running'
        or s.status = 'cancelled' and s.role = 'step' and (
            select e.type from workflow_events e where e.instance_id = s.instance_id and e.step_run_id = s.id
                and e.type in ('StepStarted', 'StepResumed', 'StepWaiting', 'ResultDropped')
            order by e.seq desc limit 1
        ) in ('StepStarted', 'StepResumed')
    )
order by s.claimed_at, s.id limit :count::integer
