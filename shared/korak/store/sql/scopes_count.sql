-- How many bodies containers have, by status.
select c.step_run_id, c.status, count(*) as count from workflow_scopes c
where c.step_run_id = any(:steps::bigint[]) group by c.step_run_id, c.status order by c.step_run_id, c.status
