-- Lock keys with limits, in id order. They come after instances. Whether steps are parked for each is seen before the lock:
-- it decides who goes first, never how many.
select f.id, f.owner_scope, f.kind, f.key, f.in_use, f.counters, f.counted_at, exists (
    select from workflow_step_runs s where s.limit_key = f.id and s.parked_for = 'limit'
) as has_parked
from flow_keys f where f.id = any(:ids::bigint[]) order by f.id for no key update
