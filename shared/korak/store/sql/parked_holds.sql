-- The holds that keep parked steps, by step. What the application gave as its reason an owner isn't told.
select s.id, h.kind, h.name, h.until, case when h.owner_scope = s.owner_scope then h.reason end as reason from workflow_step_runs s
join workflow_instances i on i.id = s.instance_id
join workflow_definitions d on d.id = i.definition_id
join holds h on h.owner_scope in ('*', s.owner_scope) and h.released_at is null
    and h.name = case h.kind when 'queue' then s.queue when 'step_type' then s.node_type else d.key end
where s.id = any(:ids::bigint[]) and s.parked_for = 'hold'
order by s.id, h.kind
