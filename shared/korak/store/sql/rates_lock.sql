-- Lock counters of starts, in id order. They come after instances.
select f.id, f.key, f.counters, f.counted_at from flow_keys f
where f.owner_scope = '*' and f.kind = 'start_rate' and f.key = any(:keys::varchar[]) order by f.id for no key update
