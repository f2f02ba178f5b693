-- Of the bodies of each container those that are shown where only so many are: the failed, what lives, and the first few.
with recursive body as (
    select c.id, c.parent_scope_id, c.status in ('failed', 'running') as asks, count(*) over one as total,
        row_number() over (one order by array_position('{failed,running}', c.status::text), c.item_index, c.id) as rank,
        row_number() over (
            partition by c.step_run_id, c.status in ('completed', 'cancelled') order by c.item_index, c.id
        ) as place, c.status in ('completed', 'cancelled') as is_settled
    from workflow_scopes c where c.instance_id = :instance::bigint
    window one as (partition by c.step_run_id)
), chosen as (
    select body.id, body.parent_scope_id from body
    where body.total <= :most::integer or (body.asks and body.rank <= :most::integer)
        or (body.is_settled and body.place <= :few::integer)
), shown as (
    select chosen.id from chosen where chosen.parent_scope_id is null
    union all
    select chosen.id from shown join chosen on chosen.parent_scope_id = shown.id
)
select id from shown
