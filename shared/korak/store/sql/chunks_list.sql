-- A page of an instance's chunks, by visit and index; of one node, or one visit, alone where it is named.
select execution_id, index, node_id, visit, attempt, content, created_at from workflow_chunks
where instance_id = :instance_id::bigint and (execution_id, index) > (:execution_id::varchar, :index::integer)
    and (:step::varchar is null or node_id = :step::varchar or execution_id = :step::varchar) and index > :after::integer
order by execution_id, index limit :page::integer
