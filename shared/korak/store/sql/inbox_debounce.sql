-- Open the window of a debounced start, or have the open one start with this body, later, but never after its longest wait.
insert into workflow_inbox as w (kind, owner_scope, name, body, starter_id, debounce_key, due_at, opened_at, latest_at,
    idempotency_digest, fingerprint)
values ('start', :owner_scope::varchar, :name::varchar, :body::jsonb, :starter_id::varchar, :key::varchar,
    :due_at::timestamptz, :now::timestamptz, :latest_at::timestamptz, :digest::varchar, :fingerprint::varchar)
on conflict (owner_scope, name, debounce_key) where debounce_key is not null and failed_at is null do update set
    body = excluded.body,
    starter_id = excluded.starter_id,
    due_at = least(excluded.due_at, w.latest_at, w.opened_at + (excluded.latest_at - excluded.opened_at)),
    latest_at = least(w.latest_at, w.opened_at + (excluded.latest_at - excluded.opened_at)),
    idempotency_digest = excluded.idempotency_digest,
    fingerprint = excluded.fingerprint
returning due_at
