-- Insert the waits of steps that park or are to be retried, and the shapes by which events will find them.
with shaped as (
    insert into event_shapes (owner_scope, name, paths)
    select shape.owner_scope, shape.name, shape.paths
    from rows(shape: owner_scope varchar, name varchar, paths jsonb)
    on conflict do nothing
)
insert into workflow_waits (id, instance_id, step_run_id, owner_scope, kind, status, event_key, match, match_digest,
    correlation, mode, condition, poll_seconds, payload, outcome, looks_back, due_at, is_date, remaining, fired_at, created_at)
select id, instance_id, step_run_id, owner_scope, kind, status, event_key, match, match_digest, correlation, mode, condition,
    poll_seconds, payload, outcome, looks_back, due_at, is_date, remaining, fired_at, created_at
from rows(wait: id bigint, instance_id bigint, step_run_id bigint, owner_scope varchar, kind varchar, status varchar,
    event_key varchar, match jsonb, match_digest varchar, correlation jsonb, mode varchar, condition jsonb,
    poll_seconds double precision, payload jsonb, outcome varchar, looks_back boolean, due_at timestamptz, is_date boolean,
    remaining double precision, fired_at timestamptz, created_at timestamptz)
