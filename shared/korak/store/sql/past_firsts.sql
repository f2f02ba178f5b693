-- The first event of every attempt of instances that go back.
select e.step_run_id, min(e.seq) as seq from workflow_events e
where e.instance_id = any(:ids::bigint[]) and e.step_run_id is not null group by e.step_run_id
