-- Keys that were never counted before.
insert into flow_keys (owner_scope, kind, key, counters, idle_at)
select wanted.owner_scope, wanted.kind, wanted.key, array_fill(0, array[60]), wanted.idle_at
from rows(wanted: owner_scope varchar, kind varchar, key varchar, idle_at timestamptz)
on conflict do nothing
