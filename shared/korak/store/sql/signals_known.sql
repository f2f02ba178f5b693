-- Which instances have had a delivery under that id of the sender's.
select asked.instance_id, asked.source_id
from rows(asked: instance_id bigint, source_id varchar)
where exists (
    select 1 from workflow_signals s
    where s.instance_id = asked.instance_id and s.wait_id is null and s.source_id = asked.source_id
)
