-- Bring one cascade to its next page of open children, in the order of their ids. Those of one run go one after the other, and
-- one that a later one has overtaken ends where it is. With the last page the row is gone. A child that was bidden to go on
-- again is as good as open.
with taken as (
    select c.instance_id, c.seq, c.kind, c.sender, c.cursor, exists (
            select from workflow_cascades later where later.instance_id = c.instance_id and later.seq > c.seq
        ) as is_overtaken
    from workflow_cascades c
    where not exists (
        select from workflow_cascades earlier where earlier.instance_id = c.instance_id and earlier.seq < c.seq
    )
    order by c.instance_id limit 1 for update skip locked
), page as (
    select child.id, child.owner_scope, child.is_told from taken cross join lateral (
        select i.id, i.owner_scope, i.ended_at is null or exists (
                select from workflow_signals w
                where w.instance_id = i.id and w.kind = 'retry' and w.taken_at is null
            ) as is_told
        from workflow_instances i
        where i.parent_instance_id = taken.instance_id and i.id > taken.cursor and not taken.is_overtaken
        order by i.id limit :count::integer
    ) child
), told as (
    insert into workflow_signals (instance_id, owner_scope, kind, source_id, sender, created_at)
    select page.id, page.owner_scope, taken.kind, (taken.sender ->> 'instance') || ':' || taken.seq, taken.sender,
        :now::timestamptz
    from taken cross join page where page.is_told
    order by page.id
    on conflict on constraint wsig_source_unique do nothing
), moved as (
    update workflow_cascades c set cursor = (select max(id) from page) from taken
    where c.instance_id = taken.instance_id and c.seq = taken.seq and (select count(*) from page) = :count::integer
), gone as (
    delete from workflow_cascades c using taken
    where c.instance_id = taken.instance_id and c.seq = taken.seq and (select count(*) from page) < :count::integer
)
select taken.instance_id, (select count(*) from page where page.is_told) as count from taken
