-- The keys that parked steps wait for.
select s.id, f.kind, f.key, s.limit_until from workflow_step_runs s join flow_keys f on f.id = s.limit_key
where s.id = any(:ids::bigint[]) and s.parked_for = 'limit'
