-- The scopes that a decision may look at: bodies that live; some that are to be started, a page where their container was
-- made ready for them; all of a small container, or of one that is to be merged.
with found as (
    select c.id from workflow_scopes c where c.instance_id = any(:ids::bigint[]) and c.status = 'running'
    union
    select c.id from rows(container: id bigint, next_index integer, is_whole boolean, room integer)
    cross join lateral (
        select c.id from workflow_scopes c where c.step_run_id = container.id and container.is_whole
        union all
        (select c.id from workflow_scopes c
        where c.step_run_id = container.id and c.name is null and c.item_index >= container.next_index
            and c.status = 'pending' and not container.is_whole
        order by c.item_index limit container.room)
    ) c
)
select c.id, c.instance_id, c.step_run_id, c.created_at, c.parent_scope_id, c.name, c.item_index, c.item, c.status, c.state,
    c.walk, c.outcome, c.output, c.error, c.finish_order, c.ended_at, c.halted_step_run_id
from found cross join lateral (select * from workflow_scopes c where c.id = found.id limit 1) c
