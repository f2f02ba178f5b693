-- Lock instances in id order, waiting for others. Reads this table and nothing else.
select i.id from workflow_instances i where i.id = any(:ids::bigint[]) order by i.id for no key update
