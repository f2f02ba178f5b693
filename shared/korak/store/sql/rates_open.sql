-- The counters of limits that were never counted before.
insert into flow_keys (owner_scope, kind, key, counters)
select '*', 'start_rate', wanted.key, array_fill(0, array[60]) from rows(wanted: key varchar)
on conflict do nothing
