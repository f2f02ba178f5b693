-- The queues with steps that were sent long ago, found by skipping through the index.
with recursive sent (queue) as (
    (select s.queue from workflow_step_runs s where s.sent_at is not null order by s.queue limit 1)
    union all
    select (
        select s.queue from workflow_step_runs s where s.sent_at is not null and s.queue > sent.queue
        order by s.queue limit 1
    )
    from sent where sent.queue is not null
)
select queue from sent where queue is not null and exists (
    select from workflow_step_runs s where s.queue = sent.queue
        and s.sent_at <= :now::timestamptz - make_interval(secs => :after::float8)
)
