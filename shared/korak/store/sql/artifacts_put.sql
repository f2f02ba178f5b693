-- Keep an artifact from outside. The instance can't be deleted meanwhile, and nobody who works on it is held up.
with found as (
    select id from workflow_instances where id = :instance_id::bigint for key share
)
insert into workflow_artifacts (instance_id, key, kind, content, size, metadata, created_at, updated_at)
select found.id, :key::varchar, :kind::varchar, :content::bytea, :size::integer, :metadata::jsonb,
    :now::timestamptz, :now::timestamptz
from found
on conflict (instance_id, key) do update set kind = excluded.kind, content = excluded.content, size = excluded.size,
    metadata = excluded.metadata, node_id = null, visit = null, execution_id = null, updated_at = excluded.updated_at
returning created_at = updated_at as is_new
