-- Steps that waited for an engine with their type, now ready in a queue that such an engine serves: their own if it does.
-- A page of them, best first.
with freed as (
    select s.id, s.queue, s.type_version from workflow_step_runs s
    where s.parked_for = 'engine' and s.node_type = :type::varchar and s.status = 'queued'
        and s.type_version = any(:versions::integer[])
    order by s.priority desc, s.created_at, s.id limit :count::integer for update skip locked
), placed as (
    select freed.id, coalesce(
        (
            select offer.queue from rows(offer: version integer, queue varchar)
            where offer.version = freed.type_version order by offer.queue <> freed.queue, offer.queue limit 1
        ),
        freed.queue
    ) as queue
    from freed
)
update workflow_step_runs s set parked_for = null, ready_at = :now::timestamptz, sent_at = null, sends = 0, queue = placed.queue
from placed where s.id = placed.id returning s.queue
