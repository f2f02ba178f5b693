-- Bound the wait for locks in this transaction.
select set_config('lock_timeout', :timeout::text, true)
