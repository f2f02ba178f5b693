-- The rows of the inbox that are due.
select b.id from workflow_inbox b where b.failed_at is null and b.due_at <= :now::timestamptz
order by b.due_at, b.id limit :count::integer
