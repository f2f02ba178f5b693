-- Claim start keys: the ledger's unique key decides who starts. One that has expired counts as absent (ID-4).
insert into workflow_idempotency_keys (scope, key, definition_id, instance_id, instance_ulid, fingerprint, expires_at, created_at)
select 'start', key, definition_id, instance_id, instance_ulid, fingerprint, expires_at, created_at
from rows(claim: key varchar, definition_id bigint, instance_id bigint, instance_ulid varchar, fingerprint varchar,
    expires_at timestamptz, created_at timestamptz)
order by key
on conflict (scope, key) do update set
    definition_id = excluded.definition_id,
    instance_id = excluded.instance_id,
    instance_ulid = excluded.instance_ulid,
    fingerprint = excluded.fingerprint,
    expires_at = excluded.expires_at,
    created_at = excluded.created_at
where workflow_idempotency_keys.expires_at <= excluded.created_at
returning key
