-- Look at a hold that is over no more, unless it has still kept a step that no other one keeps: others have it locked.
delete from holds h where h.id = :id::bigint and h.released_at is not null and not exists (
    select from workflow_step_runs s
    cross join lateral (select i.definition_id from workflow_instances i where i.id = s.instance_id limit 1) i
    cross join lateral (select d.key from workflow_definitions d where d.id = i.definition_id limit 1) d
    where s.parked_for = 'hold' and (:owner::varchar = '*' or s.owner_scope = :owner::varchar)
        and case :kind::varchar when 'queue' then s.queue when 'step_type' then s.node_type else d.key end = :name::varchar
        and not exists (
            select from holds other
            where other.released_at is null and (other.until is null or other.until > :now::timestamptz)
                and other.owner_scope in ('*', s.owner_scope)
                and other.name = case other.kind when 'queue' then s.queue when 'step_type' then s.node_type else d.key end
        )
)
