-- Close the engines whose lease is over, before anything of theirs is taken over.
with gone as (
    select e.id from engines e where e.closed_at is null and e.lease_until <= :now::timestamptz
    order by e.id for update skip locked
)
update engines e set closed_at = :now::timestamptz, close_reason = 'lease_expired'
from gone where e.id = gone.id returning e.id
