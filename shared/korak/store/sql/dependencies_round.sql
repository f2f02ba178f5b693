-- Waits that are for one another: from each of these waits every way over runs that it can't do without, where one leads back.
-- Only who is waited for can stand in such a round.
with recursive way (wait_id, start_id, via_id, at_id) as (
    select d.wait_id, d.instance_id, d.instance_id, d.awaited_id from workflow_dependencies d
    join workflow_instances i on i.id = d.instance_id
    where d.wait_id = any(:waits::bigint[]) and d.is_needed and (
        exists (select from workflow_dependencies other where other.awaited_id = d.instance_id and other.is_needed)
        or exists (select from workflow_waits w where w.event_key = i.ulid and w.kind = 'child' and w.status in ('pending', 'suspended'))
    )
    union
    select way.wait_id, way.start_id, edge.from_id, edge.to_id
    from way cross join lateral (
        select d.instance_id as from_id, d.awaited_id as to_id from workflow_dependencies d
        where d.instance_id = way.at_id and d.is_needed
        union all
        select w.instance_id, child.id from workflow_waits w join workflow_instances child on child.ulid = w.event_key
        where w.instance_id = way.at_id and w.kind = 'child' and w.status in ('pending', 'suspended')
    ) edge
    where way.at_id <> way.start_id
)
select way.wait_id, start.ulid as start, via.ulid as via, place.ulid as place
from way
join workflow_instances start on start.id = way.start_id
join workflow_instances via on via.id = way.via_id
join workflow_instances place on place.id = way.at_id
where exists (select from way round where round.wait_id = way.wait_id and round.at_id = way.start_id)
