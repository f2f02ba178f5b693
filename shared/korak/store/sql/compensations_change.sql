-- How far the undoing of visits has come. Under their instance's lock.
update workflow_compensations c set status = compensation.status
from rows(compensation: instance_id bigint, seq bigint, status varchar)
where c.instance_id = compensation.instance_id and c.seq = compensation.seq
