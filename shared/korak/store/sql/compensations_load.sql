-- Of each instance the newest compensation that is kept and the newest that failed, without what they hold; and whole the one that
-- runs.
select c.instance_id, c.seq, c.step_run_id, c.node_id, c.visit, c.created_at, c.scope_id, c.status, c.input, c.state, c.error, c.call
from unnest(:ids::bigint[]) as wanted (id)
cross join lateral (
    (select c.instance_id, c.seq, c.step_run_id, c.node_id, c.visit, c.created_at, c.scope_id, c.status, null::jsonb as input,
        null::jsonb as state, null::jsonb as error, c.call
    from workflow_compensations c
    where c.instance_id = wanted.id and c.status in ('kept', 'undoing') and c.status = 'kept'
    order by c.instance_id desc, c.seq desc limit 1)
    union all
    (select c.instance_id, c.seq, c.step_run_id, c.node_id, c.visit, c.created_at, c.scope_id, c.status, c.input, c.state, c.error,
        c.call
    from workflow_compensations c
    where c.instance_id = wanted.id and c.status in ('kept', 'undoing') and c.status = 'undoing'
    order by c.instance_id desc, c.seq desc limit 1)
    union all
    (select c.instance_id, c.seq, c.step_run_id, c.node_id, c.visit, c.created_at, c.scope_id, c.status, null::jsonb, null::jsonb,
        null::jsonb, c.call
    from workflow_compensations c
    where c.instance_id = wanted.id and c.status = 'failed'
    order by c.instance_id desc, c.seq desc limit 1)
) c
