-- What scopes are called: the branches and items that lead to each, outermost first.
with recursive path (origin, parent_scope_id, name) as (
    select c.id, c.parent_scope_id, coalesce(c.name, c.item_index::text) from workflow_scopes c where c.id = any(:ids::bigint[])
    union all
    select path.origin, c.parent_scope_id, coalesce(c.name, c.item_index::text) || '/' || path.name
    from path join workflow_scopes c on c.id = path.parent_scope_id
)
select origin as id, name from path where parent_scope_id is null
