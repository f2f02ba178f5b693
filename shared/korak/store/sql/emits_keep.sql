-- Keep an emitted event; nothing where the owner has emitted it before.
insert into workflow_emits (owner_scope, name, payload, source_id, sender, expires_at, created_at)
values (:owner_scope::varchar, :name::varchar, :payload::jsonb, :source_id::varchar, :sender::jsonb, :expires_at::timestamptz, :created_at::timestamptz)
on conflict on constraint wemit_source_unique do nothing
returning id
