-- Insert what visits of an imported instance had done once where it comes from.
insert into workflow_idempotency_keys (scope, key, instance_id, fingerprint, result, is_done, created_at)
select 'effect', key, instance_id, fingerprint, result, true, created_at
from rows(effect: key varchar, instance_id bigint, fingerprint varchar, result jsonb, created_at timestamptz)
