-- Holds that were released or whose time is over, and whose steps are to be let go.
with ended as (
    update holds h set released_at = h.until
    where h.released_at is null and h.until <= :now::timestamptz
    returning h.id, h.owner_scope, h.kind, h.name, h.released_at
), raised as (
    update hold_state set version = version + 1 where exists (select from ended)
)
select id, owner_scope, kind, name, released_at from ended
union all
select h.id, h.owner_scope, h.kind, h.name, h.released_at from holds h where h.released_at is not null
order by id limit :count::integer
