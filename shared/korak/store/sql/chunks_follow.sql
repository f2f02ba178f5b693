-- The chunks of an instance that a reader hasn't seen: for each visit that has any, those after the last one it knows.
with recursive visits as (
    (select execution_id from workflow_chunks where instance_id = :instance_id::bigint order by execution_id limit 1)
    union all
    select (select c.execution_id from workflow_chunks c
        where c.instance_id = :instance_id::bigint and c.execution_id > v.execution_id order by c.execution_id limit 1)
    from visits v where v.execution_id is not null
)
select c.execution_id, c.index, c.node_id, c.visit, c.attempt, c.content, c.created_at
from visits v
left join rows(seen: execution_id varchar, index integer) on seen.execution_id = v.execution_id
cross join lateral (
    select * from workflow_chunks c
    where c.instance_id = :instance_id::bigint and c.execution_id = v.execution_id and c.index > coalesce(seen.index, -1)
    order by c.index limit :page::integer
) c
where v.execution_id is not null
order by c.execution_id, c.index limit :page::integer
