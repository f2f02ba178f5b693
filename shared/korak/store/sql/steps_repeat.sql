-- Steps of a queue that were sent and that nobody claimed: to be sent again, at once or at growing distance.
with lost as (
    select s.id from workflow_step_runs s
    where s.queue = :queue::varchar and s.sent_at is not null
        and s.sent_at <= :now::timestamptz - make_interval(secs => :after::float8)
        and (
            :is_empty::boolean
            or s.sent_at <= :now::timestamptz - make_interval(secs => least(600, :after::float8 * 2 ^ least(s.sends, 10)))
        )
    order by s.sent_at limit :count::integer for update skip locked
)
update workflow_step_runs s set sent_at = null from lost where s.id = lost.id returning s.id
