-- How many more ids a queue's broker may hold.
select coalesce((select q.bound from queues q where q.name = :queue::varchar), 1000) - (
    select count(*) from (
        select from workflow_step_runs s where s.queue = :queue::varchar and s.sent_at is not null
        limit coalesce((select q.bound from queues q where q.name = :queue::varchar), 1000)
    ) sent
)::integer as room
