-- Lock instances, in id order, leaving those that others hold. Reads this table and nothing else: lock, then look.
select i.id from workflow_instances i where i.id = any(:ids::bigint[]) order by i.id for no key update skip locked
