-- Versions as they were frozen.
select v.id, v.number, d.key, v.graph, v.contracts from workflow_versions v
join workflow_definitions d on d.id = v.definition_id where v.id = any(:ids::bigint[])
