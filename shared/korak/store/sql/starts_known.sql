-- Which of these start keys stand already, and for whom. One that has expired counts as absent (ID-4).
select k.key, k.instance_ulid, k.fingerprint from workflow_idempotency_keys k
where k.scope = 'start' and k.key = any(:keys::varchar[]) and k.expires_at > :now::timestamptz
