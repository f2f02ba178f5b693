-- Address commands to runs that are known by their ulid.
insert into workflow_signals (instance_id, owner_scope, kind, source_id, sender, created_at)
select i.id, i.owner_scope, command.kind, command.source_id, command.sender, command.created_at
from rows(command: ulid varchar, kind varchar, source_id varchar, sender jsonb, created_at timestamptz)
join workflow_instances i on i.ulid = command.ulid
order by i.id
on conflict on constraint wsig_source_unique do nothing
