-- The holds in force, and their version: one row without a hold where there are none.
select state.version, h.owner_scope, h.kind, h.name from hold_state state
left join holds h on h.released_at is null and (h.until is null or h.until > :now::timestamptz)
