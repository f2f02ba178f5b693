-- What these steps, or these runs themselves, hold. Under their instances' locks.
select h.flow_key_id, h.weight from flow_slots h where h.step_run_id = any(:steps::bigint[])
union all
select h.flow_key_id, h.weight from flow_slots h where h.instance_id = any(:runs::bigint[]) and h.step_run_id is null
