-- A page of an instance's artifacts by key, with what they hold where that is asked for.
select key, kind, case when :with_content::boolean then content end as content, size, metadata, node_id, visit,
    execution_id, created_at, updated_at
from workflow_artifacts where instance_id = :instance_id::bigint and key > :after::varchar order by key limit :page::integer
