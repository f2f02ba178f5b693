-- How many ids each queue's broker may still take: none while anything ready is unsent, else its bound less what is sent.
select wanted.queue, case
    when exists (
        select from workflow_step_runs s
        where s.queue = wanted.queue and s.ready_at is not null and s.sent_at is null
    ) then 0
    else coalesce(q.bound, 1000) - (
        select count(*) from (
            select from workflow_step_runs s where s.queue = wanted.queue and s.sent_at is not null
            limit coalesce(q.bound, 1000)
        ) sent
    )::integer
end as room
from unnest(:queues::varchar[]) as wanted (queue)
left join queues q on q.name = wanted.queue
