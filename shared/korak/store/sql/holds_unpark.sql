-- Let steps go that a hold kept and that no other one keeps, a page of them, best first; the queue of each.
with freed as (
    select s.id from workflow_step_runs s
    cross join lateral (select i.definition_id from workflow_instances i where i.id = s.instance_id limit 1) i
    cross join lateral (select d.key from workflow_definitions d where d.id = i.definition_id limit 1) d
    where s.parked_for = 'hold' and (:owner::varchar = '*' or s.owner_scope = :owner::varchar)
        and case :kind::varchar when 'queue' then s.queue when 'step_type' then s.node_type else d.key end = :name::varchar
        and not exists (
            select from holds h
            where h.released_at is null and (h.until is null or h.until > :now::timestamptz)
                and h.owner_scope in ('*', s.owner_scope)
                and h.name = case h.kind when 'queue' then s.queue when 'step_type' then s.node_type else d.key end
        )
    order by s.priority desc, s.created_at, s.id limit :count::integer for update of s skip locked
)
update workflow_step_runs s set parked_for = null, ready_at = :now::timestamptz, sent_at = null, sends = 0
from freed where s.id = freed.id returning s.queue
