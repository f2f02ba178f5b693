-- Steps that were sent and not taken stand ready again.
with standing as (
    select s.id from workflow_step_runs s
    where s.id = any(:ids::bigint[]) and num_nulls(s.sent_at) = 0 and s.status in ('queued', 'waiting')
    order by s.id for update skip locked
)
update workflow_step_runs s set sent_at = null from standing where s.id = standing.id returning s.id
