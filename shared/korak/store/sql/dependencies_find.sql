-- Which of these runs the owner has.
select i.ulid from workflow_instances i where i.ulid = any(:ulids::varchar[]) and i.owner_scope = :owner_scope::varchar
