-- Which of these queues no live engine serves.
select wanted.queue from unnest(:queues::varchar[]) as wanted (queue)
where not exists (
    select from engines e where e.closed_at is null and e.lease_until > :now::timestamptz and e.queues ? wanted.queue
)
