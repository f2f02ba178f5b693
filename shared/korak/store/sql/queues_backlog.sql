-- The queues in which something ready waits to be sent, found by skipping through the index.
with recursive backlog (queue) as (
    (
        select s.queue from workflow_step_runs s where s.ready_at is not null and s.sent_at is null
        order by s.queue limit 1
    )
    union all
    select (
        select s.queue from workflow_step_runs s
        where s.ready_at is not null and s.sent_at is null and s.queue > backlog.queue
        order by s.queue limit 1
    )
    from backlog where backlog.queue is not null
)
select queue from backlog where queue is not null
