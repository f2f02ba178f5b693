-- What could not be undone may be tried again: `call` counts how often that was begun, as the hooks that do it have it too.
alter table workflow_compensations add column call smallint not null default 1;
create index wcomp_failed_idx on workflow_compensations (instance_id, seq) where status = 'failed';
