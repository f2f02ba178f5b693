-- Events that were accepted before a time and never matched to their end: whoever did it is gone. From behind one of them.
select e.id from workflow_emits e
where e.matched_at is null and e.id > :after::bigint and e.created_at <= :before::timestamptz
order by e.id limit :count::integer
