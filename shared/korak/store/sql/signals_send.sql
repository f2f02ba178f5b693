-- Address deliveries to instances. The same thing sent twice to one wait is one delivery; a look back that took it wins.
-- In the order in which `emits_match` inserts them too, so that neither waits for the other in turn.
insert into workflow_signals (instance_id, step_run_id, wait_id, owner_scope, kind, name, payload, source_id, sender,
    taken_at, created_at)
select instance_id, step_run_id, wait_id, owner_scope, kind, name, payload, source_id, sender, taken_at, created_at
from rows(signal: instance_id bigint, step_run_id bigint, wait_id bigint, owner_scope varchar, kind varchar, name varchar,
    payload jsonb, source_id varchar, sender jsonb, taken_at timestamptz, created_at timestamptz)
order by instance_id, wait_id
on conflict on constraint wsig_source_unique do update
    set taken_at = coalesce(workflow_signals.taken_at, excluded.taken_at)
