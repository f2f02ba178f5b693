-- When something is due next, after now.
select least(
    (
        select w.due_at from workflow_waits w
        where w.status = 'pending' and w.due_at is not null and w.sent_at is null and w.due_at > :now::timestamptz
        order by w.due_at limit 1
    ),
    (
        select i.deadline_at from workflow_instances i
        where i.ended_at is null and i.deadline_at is not null and i.deadline_at > :now::timestamptz
        order by i.deadline_at limit 1
    ),
    (
        select e.lease_until from engines e where e.closed_at is null and e.lease_until > :now::timestamptz
        order by e.lease_until limit 1
    ),
    (
        select b.due_at from workflow_inbox b where b.failed_at is null and b.due_at > :now::timestamptz
        order by b.due_at limit 1
    )
) as due_at
