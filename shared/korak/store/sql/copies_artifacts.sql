-- Insert what an imported instance keeps.
insert into workflow_artifacts (instance_id, key, kind, content, size, metadata, node_id, visit, execution_id,
    created_at, updated_at)
select instance_id, key, kind, content, size, metadata, node_id, visit, execution_id, created_at, updated_at
from rows(artifact: instance_id bigint, key varchar, kind varchar, content bytea, size integer, metadata jsonb,
    node_id varchar, visit integer, execution_id varchar, created_at timestamptz, updated_at timestamptz)
