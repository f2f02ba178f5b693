-- The newest run of each id and the open one, after the ids were locked.
select wanted.place, r.id, r.ulid, r.version_id, r.run_number, r.status
from rows(wanted: place integer, owner_scope varchar, definition_id bigint, business_id varchar)
cross join lateral (
    (
        select i.id, i.ulid, i.version_id, i.run_number, i.status from workflow_instances i
        where i.owner_scope = wanted.owner_scope and i.business_id = wanted.business_id and i.definition_id = wanted.definition_id
        order by i.run_number desc limit 1
    )
    union
    select i.id, i.ulid, i.version_id, i.run_number, i.status from workflow_instances i
    where i.owner_scope = wanted.owner_scope and i.business_id = wanted.business_id and i.definition_id = wanted.definition_id
        and i.ended_at is null
) r
order by wanted.place, r.run_number desc
