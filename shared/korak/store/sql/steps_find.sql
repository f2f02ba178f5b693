-- The instances that steps belong to; that never changes, so no lock is needed.
select s.id, s.instance_id from workflow_step_runs s where s.id = any(:ids::bigint[])
