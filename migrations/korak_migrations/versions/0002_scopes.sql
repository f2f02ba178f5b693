-- What a decision inside a container looks for: the bodies that run, and the steps of each. Neither column changes while a
-- step is claimed and recorded in place, and a step outside of containers stands in neither index.
create index wscope_running_idx on workflow_scopes (instance_id) where status = 'running';
create index wstep_scope_idx on workflow_step_runs (scope_id) where scope_id is not null;
