-- Keep all that could not be undone once more, under a call of its own. Under their instances' locks.
update workflow_compensations set status = 'kept', call = call + 1
where instance_id = any(:ids::bigint[]) and status = 'failed'
