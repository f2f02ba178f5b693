-- The ids of runs that are known by their ulid.
select i.id from workflow_instances i where i.ulid = any(:ulids::varchar[]) order by i.id
