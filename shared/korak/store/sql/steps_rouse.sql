-- Lock waiting steps that aren't ready yet. What others hold is left: it is looked at under its instance's lock.
select s.id, s.instance_id, s.queue from workflow_step_runs s
where s.id = any(:ids::bigint[]) and s.status = 'waiting' and s.ready_at is null order by s.id for no key update skip locked
