-- Keys of starts whose time is over.
with old as (
    select k.id from workflow_idempotency_keys k where k.expires_at <= :now::timestamptz and k.expires_at is not null
    order by k.expires_at limit :count::integer for update skip locked
)
delete from workflow_idempotency_keys k using old where k.id = old.id returning k.id
