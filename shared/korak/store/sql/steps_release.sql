-- Ready steps of a queue that were not sent, best first: by priority, then in turns between owners. Stamps them as sent.
-- The owners are found by skipping through the index, at most 500 a call, from `after` on; of each as many as may be needed.
-- num_nulls keeps the planner, who may think it tiny, from reading the partial index through for every candidate.
with recursive owner (scope) as (
    (
        select s.owner_scope from workflow_step_runs s
        where s.queue = :queue::varchar and s.ready_at is not null and s.sent_at is null and s.owner_scope > :after::varchar
        order by s.owner_scope limit 1
    )
    union all
    select (
        select s.owner_scope from workflow_step_runs s
        where s.queue = :queue::varchar and s.ready_at is not null and s.sent_at is null and s.owner_scope > owner.scope
        order by s.owner_scope limit 1
    )
    from owner where owner.scope is not null
), served as (
    select scope from owner where scope is not null limit 500
), candidate as (
    select s.id, s.priority, row_number() over (partition by served.scope, s.priority order by s.id) as turn
    from served cross join lateral (
        select s.id, s.priority from workflow_step_runs s
        where s.queue = :queue::varchar and s.owner_scope = served.scope and s.ready_at is not null and s.sent_at is null
        order by s.priority desc, s.id
        limit (select least(2 * :count::integer, greatest(32, 20000 / greatest(1, count(*)))) from served)
    ) s
), chosen as (
    select s.id, candidate.turn from candidate join workflow_step_runs s on s.id = candidate.id
    where num_nulls(s.ready_at) = 0 and num_nulls(s.sent_at) = 1
    order by candidate.priority desc, candidate.turn, candidate.id
    limit :count::integer for update of s skip locked
), released as (
    update workflow_step_runs s set sent_at = :now::timestamptz, sends = s.sends + 1
    from chosen where s.id = chosen.id
    returning s.id, s.status, s.probe, s.priority, chosen.turn
)
select released.id, released.status, released.probe, (select max(scope) from served) as last_owner,
    (select count(*) from served) as owners
from released order by released.priority desc, released.turn, released.id
