-- Lock ids of callers', in the order given, until the end of the transaction: nobody else starts a run of theirs meanwhile.
select pg_advisory_xact_lock(key) from unnest(:keys::bigint[]) as key
