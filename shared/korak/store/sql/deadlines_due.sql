-- Open instances whose deadline is over, oldest first, from behind a place in that order.
select i.id, i.deadline_at from workflow_instances i
where i.ended_at is null and i.deadline_at is not null and i.deadline_at <= :now::timestamptz
    and i.deadline_at >= :since::timestamptz and (i.deadline_at, i.id) > (:since::timestamptz, :after::bigint)
order by i.deadline_at, i.id limit :count::integer
