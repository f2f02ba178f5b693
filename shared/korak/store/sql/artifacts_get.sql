-- One artifact.
select key, kind, content, size, metadata, node_id, visit, execution_id, created_at, updated_at
from workflow_artifacts where instance_id = :instance_id::bigint and key = :key::varchar
