-- The keys that steps are parked for, a page behind the one with the id `after`, found by skipping through the index.
with recursive parked (id) as (
    (
        select s.limit_key from workflow_step_runs s where s.parked_for = 'limit' and s.limit_key > :after::bigint
        order by s.limit_key limit 1
    )
    union all
    select (
        select s.limit_key from workflow_step_runs s where s.parked_for = 'limit' and s.limit_key > parked.id
        order by s.limit_key limit 1
    )
    from parked where parked.id is not null
)
select id from parked where id is not null limit :count::integer
