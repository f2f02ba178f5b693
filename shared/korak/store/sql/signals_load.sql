-- What is addressed to instances and not taken yet, oldest first, with the visit that it is for. Read afresh under every lock.
select s.id, s.instance_id, s.owner_scope, s.kind, s.source_id, s.created_at, s.step_run_id, s.wait_id, s.name,
    s.payload, s.sender, s.buffered_at, s.taken_at, s.discarded_at, r.execution_id
from workflow_signals s left join workflow_step_runs r on r.id = s.step_run_id
where s.instance_id = any(:ids::bigint[]) and s.taken_at is null order by s.id
