-- Which counters of starts there are. Locks nothing.
select f.key from flow_keys f where f.owner_scope = '*' and f.kind = 'start_rate' and f.key = any(:keys::varchar[])
