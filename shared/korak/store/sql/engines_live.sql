-- The engines that are not closed: since when they hold steps, and what they announce.
select e.id, e.held_since, e.queues, e.types from engines e where e.closed_at is null order by e.id
