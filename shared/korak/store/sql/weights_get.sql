-- How many steps an owner has in each turn.
select weight from flow_weights where owner_scope = :scope::varchar
