-- Take an artifact away.
delete from workflow_artifacts where instance_id = :instance_id::bigint and key = :key::varchar returning key
