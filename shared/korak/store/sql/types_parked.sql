-- The types of steps that no engine could run, found by skipping through the index.
with recursive parked (node_type) as (
    (
        select s.node_type from workflow_step_runs s where s.parked_for = 'engine' order by s.node_type limit 1
    )
    union all
    select (
        select s.node_type from workflow_step_runs s where s.parked_for = 'engine' and s.node_type > parked.node_type
        order by s.node_type limit 1
    )
    from parked where parked.node_type is not null
)
select node_type from parked where node_type is not null
