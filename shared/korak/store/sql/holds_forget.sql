-- Nothing is left of these holds: look at them no more.
delete from holds h where h.id = any(:ids::bigint[]) and h.released_at is not null
