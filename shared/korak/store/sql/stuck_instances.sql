-- Of the next open instances those that nothing will move: nothing of them runs, is ready, is parked or waits, or what runs
-- has outlived its lease by far. The last row, without a reason, tells how far this looked.
with page as materialized (
    select i.id, i.ulid, i.owner_scope, i.definition_id, i.updated_at from workflow_instances i
    where i.ended_at is null and i.id > :after::bigint and (:owner::varchar is null or i.owner_scope = :owner::varchar)
    order by i.id limit :count::integer
), found as (
    select page.*, 'lease_expired' as reason, s.lease_until as since, s.id as step_run_id, s.claim_token
    from page cross join lateral (
        select s.id, s.lease_until, s.claim_token from workflow_step_runs s
        where s.instance_id = page.id and s.status = 'running'
            and s.lease_until <= :now::timestamptz - make_interval(secs => :overdue::float8)
        limit 100
    ) s
    union all
    select page.*, 'orphaned', page.updated_at, null, null from page
    left join lateral (
        select true as is_there from workflow_step_runs s where s.instance_id = page.id
            and (s.status = 'running' or s.ready_at is not null or s.parked_for is not null)
        limit 1
    ) live on true
    left join lateral (
        select true as is_there from workflow_waits w where w.instance_id = page.id and w.status in ('pending', 'suspended')
        limit 1
    ) open on true
    where live.is_there is null and open.is_there is null
)
select found.id, found.ulid, found.owner_scope, d.key as definition, found.reason, found.since, found.step_run_id, s.node_id,
    s.node_type, found.claim_token
from found
cross join lateral (select * from workflow_definitions d where d.id = found.definition_id limit 1) d
left join lateral (select * from workflow_step_runs s where s.id = found.step_run_id limit 1) s on true
union all
select max(page.id), null, null, null, null, null, null, null, null, null from page
