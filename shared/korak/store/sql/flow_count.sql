-- Write what keys with limits come to, under their locks.
update flow_keys f set in_use = room.in_use, counted_at = room.counted_at, idle_at = room.idle_at,
    counters = case when room.counters is null then f.counters else room.counters::integer[] end
from rows(room: id bigint, in_use integer, counters varchar, counted_at bigint, idle_at timestamptz)
where f.id = room.id
