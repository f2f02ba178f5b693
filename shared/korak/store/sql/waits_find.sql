-- The attempt at which a visit waits for a signal of that name.
select w.step_run_id from workflow_waits w join workflow_step_runs s on s.id = w.step_run_id
where w.instance_id = :instance::bigint and w.status in ('pending', 'suspended') and w.kind in ('signal', 'event')
    and w.event_key = :name::varchar and (w.mode is null or w.payload is null) and s.execution_id = :execution::varchar
