-- Every queue that is known, served or in use: how much of one owner's (null: of all) waits in it, and who serves it.
with recursive used (name) as (
    (
        select s.queue from workflow_step_runs s where s.ready_at is not null and s.sent_at is null
        order by s.queue limit 1
    )
    union all
    select (
        select s.queue from workflow_step_runs s
        where s.ready_at is not null and s.sent_at is null and s.queue > used.name order by s.queue limit 1
    )
    from used where used.name is not null
), sent (name) as (
    (select s.queue from workflow_step_runs s where s.sent_at is not null order by s.queue limit 1)
    union all
    select (
        select s.queue from workflow_step_runs s where s.sent_at is not null and s.queue > sent.name
        order by s.queue limit 1
    )
    from sent where sent.name is not null
), served as (
    select queue.name, count(*) as consumers from engines e cross join jsonb_array_elements_text(e.queues) as queue (name)
    where e.closed_at is null and e.lease_until > :now::timestamptz group by queue.name
), known as (
    select q.name from queues q union select name from served
    union select name from used where name is not null union select name from sent where name is not null
    union select h.name from holds h where h.kind = 'queue' and h.released_at is null
)
select known.name, coalesce(q.bound, 1000) as bound, coalesce(served.consumers, 0) as consumers, (
        select count(*) from (
            select from workflow_step_runs s
            where s.queue = known.name and s.ready_at is not null and s.sent_at is null
                and (:owner::varchar is null or s.owner_scope = :owner::varchar)
            limit :most::integer
        ) counted
    ) as backlog, (
        select count(*) from (
            select from workflow_step_runs s where s.queue = known.name and s.sent_at is not null
                and (:owner::varchar is null or s.owner_scope = :owner::varchar)
            limit :most::integer
        ) counted
    ) as sent, (
        select count(*) from (
            select from workflow_step_runs s where s.parked_for = 'hold' and s.queue = known.name
                and (:owner::varchar is null or s.owner_scope = :owner::varchar)
            limit :most::integer
        ) counted
    ) as held, hold.reason, hold.until, hold.held_at, hold.owner_scope as held_for
from known
left join queues q on q.name = known.name
left join served on served.name = known.name
left join lateral (
    select h.* from holds h
    where h.kind = 'queue' and h.name = known.name and h.released_at is null
        and (h.until is null or h.until > :now::timestamptz)
        and (:owner::varchar is null or h.owner_scope in ('*', :owner::varchar))
    order by h.owner_scope limit 1
) hold on true
order by known.name
