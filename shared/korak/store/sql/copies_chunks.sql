-- Insert what visits of an imported instance have streamed so far.
insert into workflow_chunks (instance_id, execution_id, index, node_id, visit, attempt, content, created_at)
select instance_id, execution_id, index, node_id, visit, attempt, content, created_at
from rows(chunk: instance_id bigint, execution_id varchar, index integer, node_id varchar, visit integer,
    attempt smallint, content text, created_at timestamptz)
