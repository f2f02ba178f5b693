-- Slots of steps that run from now on, and of runs that were let in. Under the locks of their instances and keys.
insert into flow_slots (flow_key_id, instance_id, step_run_id, weight, taken_at)
select slot.flow_key_id, slot.instance_id, slot.step_run_id, slot.weight, :now::timestamptz
from rows(slot: flow_key_id bigint, instance_id bigint, step_run_id bigint, weight integer)
