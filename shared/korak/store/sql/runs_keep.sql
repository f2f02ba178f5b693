-- Keep runs open until the end of the transaction, those that nobody else holds. Reads this table and nothing else.
select i.id from workflow_instances i where i.id = any(:ids::bigint[]) and i.ended_at is null
order by i.id for share skip locked
