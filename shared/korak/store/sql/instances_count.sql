-- How many instances are open, by status; no more than a bound is looked at.
select case when o.paused_at is null then o.status else 'paused' end as status, count(*) as count
from (select i.status, i.paused_at from workflow_instances i where i.ended_at is null limit :most::integer) o
group by 1
