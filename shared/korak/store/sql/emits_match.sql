-- Deliver an event to a page of the open waits that it fits; an instance that has had it already doesn't get it again.
with fit as (
    select w.id, w.instance_id, w.step_run_id, w.status from workflow_waits w
    where w.match_digest = any(:digests::bpchar[]) and w.status in ('pending', 'suspended') and w.id > :after::bigint
    order by w.id limit :count::integer
), told as (
    insert into workflow_signals (instance_id, step_run_id, wait_id, owner_scope, kind, name, payload, source_id, sender, created_at)
    select fit.instance_id, fit.step_run_id, fit.id, :owner_scope::varchar, 'event', :name::varchar, :payload::jsonb,
        :source_id::varchar, :sender::jsonb, :now::timestamptz
    from fit
    where not exists (
        select from workflow_signals s
        where s.instance_id = fit.instance_id and s.source_id = :source_id::varchar and s.name = :name::varchar
    )
    order by fit.instance_id, fit.id
    on conflict on constraint wsig_source_unique do nothing
    returning wait_id
)
select fit.id, fit.instance_id, fit.step_run_id, fit.status = 'pending' as is_pending, told.wait_id is not null as is_told
from fit left join told on told.wait_id = fit.id order by fit.id
