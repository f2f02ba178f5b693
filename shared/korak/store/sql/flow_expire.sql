-- Delete keys with limits that nothing holds or waits for and that nobody counted for a long time.
with idle as (
    select f.id from flow_keys f
    where f.idle_at <= :now::timestamptz and f.in_use = 0
        and not exists (select from workflow_step_runs s where s.limit_key = f.id and s.parked_for = 'limit')
    limit :count::integer for update skip locked
)
delete from flow_keys f using idle where f.id = idle.id returning f.id
