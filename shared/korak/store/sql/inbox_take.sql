-- What is due in the inbox, and nobody else has: held until the end of the transaction, which does it. One row, or any.
select b.id, b.kind, b.owner_scope, b.name, b.body::text as body, b.starter_id, b.debounce_key, b.idempotency_digest,
    b.fingerprint, b.replaces
from workflow_inbox b
where b.failed_at is null and b.due_at <= :now::timestamptz and (:only::bigint is null or b.id = :only::bigint)
order by b.due_at, b.id limit :count::integer for update skip locked
