-- Be the one releaser of a queue until the transaction ends, unless another is.
select pg_try_advisory_xact_lock(hashtextextended('release ' || current_schema() || ' ' || :queue::varchar, 0)) as is_locked
