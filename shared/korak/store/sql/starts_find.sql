-- Who started under these keys first.
select k.key, k.instance_ulid, k.fingerprint from workflow_idempotency_keys k
where k.scope = 'start' and k.key = any(:keys::varchar[])
