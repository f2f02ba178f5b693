-- Of a signal that is for one visit: when it came to nothing, since the visit waited for it no more.
alter table workflow_signals add column discarded_at timestamptz;
