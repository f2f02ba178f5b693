-- What a visit streamed goes when its output is recorded. Under its instance's lock.
delete from workflow_chunks c using rows(closed: instance_id bigint, execution_id varchar)
where c.instance_id = closed.instance_id and c.execution_id = closed.execution_id
