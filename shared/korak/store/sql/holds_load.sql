-- The holds in force.
select h.owner_scope, h.kind, h.name from holds h
where h.released_at is null and (h.until is null or h.until > :now::timestamptz)
