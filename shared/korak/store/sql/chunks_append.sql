-- Store a chunk of a step that runs under this token; nothing, where it doesn't any more. The share lock waits for a
-- record of the step that is being written and looks again: so no late holder writes behind the attempt after it. Sent
-- again by the same attempt, as after a commit whose answer was lost, it is the same chunk.
with held as (
    select s.instance_id, s.execution_id, s.node_id, s.visit, s.attempt from workflow_step_runs s
    where s.id = :step::bigint and s.claim_token = :token::varchar and s.status = 'running' for share
)
insert into workflow_chunks (instance_id, execution_id, index, node_id, visit, attempt, content, created_at)
select held.instance_id, held.execution_id, :index::integer, held.node_id, held.visit, held.attempt, :content::text,
    :now::timestamptz
from held
on conflict (instance_id, execution_id, index) do update set content = excluded.content
    where workflow_chunks.attempt = excluded.attempt
returning index
