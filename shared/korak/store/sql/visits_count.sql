-- The newest visit of each node, of instances that go back.
select instance_id, node_id, max(visit) as visit from workflow_step_runs
where instance_id = any(:ids::bigint[]) and role = 'step' group by instance_id, node_id
