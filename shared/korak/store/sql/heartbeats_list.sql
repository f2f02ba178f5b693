-- The last heartbeats of attempts.
select id, heartbeat from workflow_step_runs where id = any(:ids::bigint[]) and heartbeat is not null
