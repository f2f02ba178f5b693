-- Ready steps of a queue that were not sent, best first: by priority, then in turns between owners, each as often in a turn
-- as its weight says; of an owner whose steps have limits in turns between their first keys, those without one together,
-- as far as they stand among its first 5,000; then by age. Stamps them as sent.
-- Owners and keys are found by skipping through their indexes, at most 500 a call, owners from `after` on; of each as many
-- steps as may be needed. num_nulls keeps the planner, who may think it tiny, from reading the partial index through for
-- every candidate, and <> from taking the rows that pass for few.
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
), keyed (scope, key) as (
    (
        select s.owner_scope, s.flow ->> 0 from workflow_step_runs s
        where s.queue = :queue::varchar and s.ready_at is not null and s.sent_at is null and s.flow is not null
            and s.owner_scope > :after::varchar
        order by s.owner_scope, s.flow ->> 0 limit 1
    )
    union all
    select s.owner_scope, s.key from keyed cross join lateral (
        select s.owner_scope, s.flow ->> 0 as key from workflow_step_runs s
        where s.queue = :queue::varchar and s.ready_at is not null and s.sent_at is null and s.flow is not null
            and (s.owner_scope, s.flow ->> 0) > (keyed.scope, keyed.key)
        order by s.owner_scope, s.flow ->> 0 limit 1
    ) s
), served as (
    select scope from owner where scope is not null limit 500
), line as (
    select scope, key from keyed limit 500
), plain as (
    select s.id, s.priority, s.created_at, served.scope,
        row_number() over (partition by served.scope, s.priority order by s.created_at, s.id) as place
    from served cross join lateral (
        select s.id, s.priority, s.created_at from workflow_step_runs s
        where s.queue = :queue::varchar and s.owner_scope = served.scope and s.ready_at is not null and s.sent_at is null
        order by s.priority desc, s.created_at, s.id
        limit (select least(2 * :count::integer, greatest(32, 20000 / greatest(1, count(*)))) from served)
    ) s
    where served.scope not in (select line.scope from line)
), candidate as (
    select s.id, s.priority, s.created_at, line.scope, line.key
    from line cross join lateral (
        select s.id, s.priority, s.created_at from workflow_step_runs s
        where s.queue = :queue::varchar and s.owner_scope = line.scope and s.flow ->> 0 = line.key
            and s.ready_at is not null and s.sent_at is null and s.flow is not null
        order by s.priority desc, s.created_at, s.id
        limit (select least(2 * :count::integer, greatest(8, 4 * :count::integer / greatest(1, count(*)))) from line)
    ) s
    union all
    select s.id, s.priority, s.created_at, mixed.scope, null
    from (select distinct scope from line) mixed cross join lateral (
        select s.id, s.priority, s.created_at from (
            select s.id, s.priority, s.created_at, s.flow from workflow_step_runs s
            where s.queue = :queue::varchar and s.owner_scope = mixed.scope and s.ready_at is not null and s.sent_at is null
            order by s.priority desc, s.created_at, s.id limit 5000
        ) s
        where s.flow is null limit :count::integer
    ) s
), ranked as (
    select c.*, row_number() over (partition by c.scope, c.priority, c.key order by c.created_at, c.id) as round
    from candidate c
), placed as (
    select id, priority, created_at, scope, place from plain
    union all
    select r.id, r.priority, r.created_at, r.scope,
        row_number() over (partition by r.scope, r.priority order by r.round, r.created_at, r.id)
    from ranked r
), turned as (
    select p.id, p.priority, p.created_at, (p.place - 1) / coalesce(w.weight, 1) as turn
    from placed p left join flow_weights w on w.owner_scope = p.scope
), chosen as (
    select s.id, turned.turn from turned join workflow_step_runs s on s.id = turned.id
    where num_nulls(s.ready_at) <> 1 and num_nulls(s.sent_at) <> 0
    order by turned.priority desc, turned.turn, turned.created_at, turned.id
    limit :count::integer for update of s skip locked
), released as (
    update workflow_step_runs s set sent_at = :now::timestamptz, sends = s.sends + 1
    from chosen where s.id = chosen.id
    returning s.id, s.status, s.probe, s.priority, s.created_at, chosen.turn
)
select released.id, released.status, released.probe, (select max(scope) from served) as last_owner,
    (select count(*) from served) as owners
from released order by released.priority desc, released.turn, released.created_at, released.id
