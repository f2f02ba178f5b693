-- The runs that waits are for, each with its status; of each wait so many.
select d.wait_id, i.ulid, i.status from workflow_dependencies d join workflow_instances i on i.id = d.awaited_id
where d.wait_id = any(:waits::bigint[]) and d.place < :most::integer
order by d.wait_id, d.place
