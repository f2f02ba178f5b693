-- Keep artifacts; one under a key that is there replaces it. Under its instance's lock, as steps leave them.
insert into workflow_artifacts (instance_id, key, kind, content, size, metadata, node_id, visit, execution_id,
    created_at, updated_at)
select artifact.instance_id, artifact.key, artifact.kind, artifact.content, artifact.size, artifact.metadata,
    artifact.node_id, artifact.visit, artifact.execution_id, artifact.created_at, artifact.created_at
from rows(artifact: instance_id bigint, key varchar, kind varchar, content bytea, size integer, metadata jsonb,
    node_id varchar, visit integer, execution_id varchar, created_at timestamptz)
on conflict (instance_id, key) do update set kind = excluded.kind, content = excluded.content, size = excluded.size,
    metadata = excluded.metadata, node_id = excluded.node_id, visit = excluded.visit,
    execution_id = excluded.execution_id, updated_at = excluded.updated_at
