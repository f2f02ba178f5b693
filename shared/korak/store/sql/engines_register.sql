-- A new engine, under a lease.
insert into engines (ulid, host, pid, build, queues, types, lease_until, held_since, started_at, seen_at)
select :ulid::varchar, :host::varchar, :pid::integer, :build::varchar, said.queues, said.types, :lease_until::timestamptz,
    :now::timestamptz, :now::timestamptz, :now::timestamptz
from rows(said: queues jsonb, types jsonb)
returning id
