-- Answers to requests with a key whose time is over.
with old as (
    select a.owner_scope, a.key from http_answers a where a.expires_at <= :now::timestamptz
    order by a.expires_at limit :count::integer for update skip locked
)
delete from http_answers a using old where a.owner_scope = old.owner_scope and a.key = old.key returning a.key
