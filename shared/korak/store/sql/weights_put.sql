-- Say how many steps an owner has in each turn.
insert into flow_weights (owner_scope, weight) values (:scope::varchar, :weight::integer)
on conflict (owner_scope) do update set weight = excluded.weight
returning weight
