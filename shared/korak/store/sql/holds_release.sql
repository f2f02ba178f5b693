-- Release what is held; what is over already is released as well.
with released as (
    update holds h set released_at = :now::timestamptz
    where h.owner_scope = :owner::varchar and h.kind = :kind::varchar and h.name = :name::varchar and h.released_at is null
    returning h.owner_scope, h.kind, h.name, h.reason, h.until, h.held_by, h.held_at, h.released_at
), raised as (
    update hold_state set version = version + 1 where exists (select from released)
)
select owner_scope, kind, name, reason, until, held_by, held_at, released_at from released
