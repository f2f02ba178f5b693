-- What a visit has streamed so far, in order.
select content from workflow_chunks
where instance_id = :instance_id::bigint and execution_id = :execution_id::varchar order by index
