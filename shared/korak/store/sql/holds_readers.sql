-- Our open transactions that may have read the version of the holds, of those that are named (null: all): whoever reads it
-- locks its table before it looks, until it ends.
select l.virtualtransaction as reader from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'relation' and l.relation = 'hold_state'::regclass and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.pid <> pg_backend_pid() and (a.application_name = 'korak' or a.application_name like 'korak %')
    and (:readers::text[] is null or l.virtualtransaction = any(:readers::text[]))
