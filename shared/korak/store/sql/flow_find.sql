-- Which keys with limits there are. Locks nothing.
select f.id, f.owner_scope, f.kind, f.key
from rows(wanted: owner_scope varchar, kind varchar, key varchar)
join flow_keys f on f.owner_scope = wanted.owner_scope and f.kind = wanted.kind and f.key = wanted.key
