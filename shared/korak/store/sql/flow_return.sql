-- The slots of steps that run no longer, and of runs that have ended. Under the locks of their instances and keys.
with of_steps as (
    delete from flow_slots h where h.step_run_id = any(:steps::bigint[])
)
delete from flow_slots h where h.instance_id = any(:runs::bigint[]) and h.step_run_id is null
