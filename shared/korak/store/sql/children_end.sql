-- Tell the ends of runs to the waits that are for them as children. The same end told again to one wait is told once.
insert into workflow_signals (instance_id, step_run_id, wait_id, owner_scope, kind, name, payload, source_id, created_at)
select w.instance_id, w.step_run_id, w.id, w.owner_scope, 'child', ended.ulid, ended.payload, ended.source_id, ended.created_at
from rows(ended: ulid varchar, payload jsonb, source_id varchar, created_at timestamptz)
join workflow_waits w on w.event_key = ended.ulid and w.kind = 'child' and w.status in ('pending', 'suspended')
order by w.instance_id, w.id
on conflict on constraint wsig_source_unique do nothing
