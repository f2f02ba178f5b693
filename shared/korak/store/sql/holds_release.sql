-- Release what is held; what is over already is released as well.
update holds h set released_at = :now::timestamptz
where h.owner_scope = :owner::varchar and h.kind = :kind::varchar and h.name = :name::varchar and h.released_at is null
returning h.owner_scope, h.kind, h.name, h.reason, h.until, h.held_by, h.held_at, h.released_at
