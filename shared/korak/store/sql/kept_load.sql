-- For waits that look back: the oldest kept events that may match and that their instance hasn't consumed.
select wait.step_run_id, e.source_id, e.name, e.payload, e.created_at
from rows(wait: instance_id bigint, step_run_id bigint, owner_scope varchar, event_key varchar, holds jsonb)
cross join lateral (
    select e.id, e.source_id, e.name, e.payload, e.created_at from workflow_emits e
    where e.owner_scope = wait.owner_scope and e.name = wait.event_key and e.expires_at > :now::timestamptz
        and e.payload @> wait.holds
        and not exists (
            select from workflow_signals s
            where s.instance_id = wait.instance_id and s.source_id = e.source_id and s.name = e.name
        )
    order by e.id limit 20
) e
order by e.id
