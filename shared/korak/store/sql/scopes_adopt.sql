-- A failed container is tried again: its scopes belong to the new attempt. What hasn't succeeded waits for its start, with the
-- attempt where it was halted if it had begun; of a container that was decided its reducer alone. Under the instance's lock.
update workflow_scopes c set
    step_run_id = body.after,
    status = case when body.is_kept then c.status else 'pending' end,
    state = case when body.is_kept or body.halted is not null then c.state end,
    walk = case when body.is_kept or body.halted is not null then c.walk end,
    outcome = case when body.is_kept then c.outcome end,
    output = case when body.is_kept then c.output end,
    error = case when body.is_kept then c.error end,
    finish_order = case when body.is_kept then c.finish_order end,
    ended_at = case when body.is_kept then c.ended_at end,
    halted_step_run_id = body.halted
from (
    select c.id, adopted.after, kept.is_kept, stood.id as halted
    from rows(adopted: before bigint, after bigint, is_decided boolean)
    join workflow_scopes c on c.step_run_id = adopted.before
    cross join lateral (
        select case when adopted.is_decided then c.name is distinct from '$reducer' else c.status = 'completed' end as is_kept
    ) kept
    left join lateral (
        select newest.id from (
            select distinct on (s.node_id) s.id, s.status, s.outcome, s.finished_at from workflow_step_runs s
            where s.scope_id = c.id and s.role = 'step' and not kept.is_kept
            order by s.node_id, s.visit desc, s.attempt desc
        ) newest
        where newest.status in ('failed', 'cancelled') and newest.outcome is null
        order by newest.finished_at desc limit 1
    ) stood on true
) body
where c.id = body.id
