-- What runs bring to all their open children, until the last page of them has it.
insert into workflow_cascades (instance_id, seq, kind, sender, created_at)
select instance_id, seq, kind, sender, created_at
from rows(cascade: instance_id bigint, seq bigint, kind varchar, sender jsonb, created_at timestamptz)
