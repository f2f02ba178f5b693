-- The keys that attempts count under.
select s.id, s.flow from workflow_step_runs s where s.id = any(:ids::bigint[]) and s.flow is not null
