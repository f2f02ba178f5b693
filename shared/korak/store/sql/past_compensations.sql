-- What was kept to undo visits of instances that go back, and how far that has come.
select instance_id, seq, node_id, visit, status from workflow_compensations
where instance_id = any(:ids::bigint[]) order by instance_id, seq
