-- The visits of instances that go back which were undone, or of which nobody knows whether they were.
select instance_id, seq, node_id, visit from workflow_compensations
where instance_id = any(:ids::bigint[]) and status <> 'kept' order by instance_id, seq
