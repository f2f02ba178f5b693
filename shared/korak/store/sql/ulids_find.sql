-- Whether an instance has this ULID, whoever's it is.
select i.id from workflow_instances i where i.ulid = :ulid::varchar
