-- What has become of runs that were waited for.
select i.ulid, i.status, i.result from workflow_instances i
where i.ulid = any(:ulids::varchar[]) and i.owner_scope = :owner_scope::varchar
