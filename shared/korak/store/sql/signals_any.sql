-- The instances to which something is addressed that isn't taken yet.
select id.instance_id from unnest(:ids::bigint[]) as id (instance_id)
where exists (select from workflow_signals s where s.instance_id = id.instance_id and s.taken_at is null)
