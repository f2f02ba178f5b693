-- Hold something, or hold it otherwise from now on.
with raised as (update hold_state set version = version + 1)
insert into holds (owner_scope, kind, name, reason, until, held_by, held_at)
values (:owner::varchar, :kind::varchar, :name::varchar, :reason::text, :until::timestamptz, :actor::jsonb, :now::timestamptz)
on conflict (owner_scope, kind, name) where released_at is null
do update set reason = excluded.reason, until = excluded.until, held_by = excluded.held_by, held_at = excluded.held_at
returning owner_scope, kind, name, reason, until, held_by, held_at, released_at
