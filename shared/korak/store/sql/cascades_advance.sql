-- Bring commands to the next pages of open children, in the order of their ids: those of these runs, or of any where none are
-- named. Those of one run go one after the other, and one that a later one has overtaken ends where it is. With the last page
-- the row is gone. A child that was bidden to go on again is as good as open. So many rows in all, shared by the commands.
with chosen as (
    select c.instance_id, c.seq from workflow_cascades c where c.instance_id = any(:instances::bigint[])
    union all
    select c.instance_id, c.seq from workflow_cascades c where :instances::bigint[] is null
), taken as (
    select c.instance_id, c.seq, c.kind, c.sender, c.cursor, exists (
            select from workflow_cascades later where later.instance_id = c.instance_id and later.seq > c.seq
        ) as is_overtaken
    from chosen join workflow_cascades c on c.instance_id = chosen.instance_id and c.seq = chosen.seq
    where not exists (
        select from workflow_cascades earlier where earlier.instance_id = c.instance_id and earlier.seq < c.seq
    )
    order by c.instance_id limit greatest(1, :count::integer / 10) for update of c skip locked
), share as (
    select greatest(1, :count::integer / count(*)) as size from taken
), page as (
    select taken.instance_id as parent_id, taken.seq, taken.kind, taken.sender, child.id, child.owner_scope, child.is_told
    from taken cross join lateral (
        select i.id, i.owner_scope, i.ended_at is null or exists (
                select from workflow_signals w
                where w.instance_id = i.id and w.kind = 'retry' and w.taken_at is null
            ) as is_told
        from workflow_instances i
        where i.parent_instance_id = taken.instance_id and i.id > taken.cursor and not taken.is_overtaken
        order by i.id limit (select size from share)
    ) child
), done as (
    select taken.instance_id, taken.seq, max(page.id) as cursor, count(page.id) < (select size from share) as is_over,
        coalesce(array_agg(page.id order by page.id) filter (where page.is_told), '{}') as children
    from taken left join page on page.parent_id = taken.instance_id
    group by taken.instance_id, taken.seq
), told as (
    insert into workflow_signals (instance_id, owner_scope, kind, source_id, sender, created_at)
    select page.id, page.owner_scope, page.kind, (page.sender ->> 'instance') || ':' || page.seq, page.sender, :now::timestamptz
    from page where page.is_told order by page.id
    on conflict on constraint wsig_source_unique do nothing
), moved as (
    update workflow_cascades c set cursor = done.cursor from done
    where c.instance_id = done.instance_id and c.seq = done.seq and not done.is_over
), gone as (
    delete from workflow_cascades c using done
    where c.instance_id = done.instance_id and c.seq = done.seq and done.is_over
)
select done.instance_id, done.seq, done.is_over, done.children from done
