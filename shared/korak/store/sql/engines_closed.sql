-- Closed engines that may still hold steps. Of one that was found to hold none the range of claims begins after its end.
select e.id, e.held_since, e.closed_at from engines e
where e.closed_at is not null and e.held_since < e.closed_at + interval '1 hour' order by e.id
