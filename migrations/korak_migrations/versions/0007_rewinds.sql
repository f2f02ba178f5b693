-- Set by a rewind alone; null, which takes no room, for everything else.
alter table workflow_step_runs add column undone_at timestamptz;
