-- Of the next open instances those that nothing will move: nothing of them runs, is ready, is parked or waits, or what runs
-- has outlived its lease by far. The last row, without a reason, tells how far this looked.
with page as materialized (
    select i.id, i.ulid, i.owner_scope, i.definition_id, i.updated_at from workflow_instances i
    where i.ended_at is null and i.id > :after::bigint and (:owner::varchar is null or i.owner_scope = :owner::varchar)
    order by i.id limit :count::integer
), found as (
    select page.id, 'lease_past' as reason, s.lease_until as since, s.id as step_run_id, s.claim_token
    from page join workflow_step_runs s on s.instance_id = page.id
    where s.status = 'running' and s.lease_until <= :now::timestamptz - make_interval(secs => :overdue::float8)
    union all
    select page.id, 'orphaned', page.updated_at, null, null from page
    where not exists (
        select from workflow_step_runs s where s.instance_id = page.id
            and (s.status = 'running' or s.ready_at is not null or s.parked_for is not null)
    ) and not exists (
        select from workflow_waits w where w.instance_id = page.id and w.status in ('pending', 'suspended')
    )
)
select page.id, page.ulid, page.owner_scope, d.key as definition, found.reason, found.since, found.step_run_id, s.node_id,
    s.node_type, found.claim_token
from found join page on page.id = found.id
join workflow_definitions d on d.id = page.definition_id
left join workflow_step_runs s on s.id = found.step_run_id
union all
select max(page.id), null, null, null, null, null, null, null, null, null from page
