-- Kept events whose time is over and that were matched.
with old as (
    select e.id from workflow_emits e where e.expires_at <= :now::timestamptz and e.matched_at is not null
    order by e.expires_at limit :count::integer for update skip locked
)
delete from workflow_emits e using old where e.id = old.id returning e.id
