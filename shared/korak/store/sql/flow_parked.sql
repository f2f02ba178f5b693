-- The first steps that are parked for each key, best first. Locks nothing.
select s.id, s.limit_key, s.limit_ceiling, s.limit_weight, s.instance_id, s.owner_scope, s.node_id, s.node_type,
    s.type_version, s.visit, s.attempt, s.idempotency_key, s.queue, s.created_at, s.status, s.priority
from unnest(:ids::bigint[]) as wanted (id)
cross join lateral (
    select * from workflow_step_runs s where s.limit_key = wanted.id and s.parked_for = 'limit'
    order by s.priority desc, s.created_at, s.id limit :count::integer
) s
