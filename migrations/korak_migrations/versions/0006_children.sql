-- The children of a run in the order of their ids, so that a page of them is a range.
drop index winst_parent_idx;
create index winst_parent_idx on workflow_instances (parent_instance_id, id) where parent_instance_id is not null;
create index winst_root_idx on workflow_instances (root_instance_id) where root_instance_id is not null;

-- The waits for a child, by its ulid: the child's last record looks them up.
create index wwait_child_idx on workflow_waits (event_key) where kind = 'child' and status in ('pending', 'suspended');

alter table workflow_signals drop constraint wsig_kind_check;
alter table workflow_signals add constraint wsig_kind_check check (
    kind in ('signal', 'event', 'child', 'ended', 'cancel', 'pause', 'resume', 'retry', 'decision'));

-- A run that waits for others: a row for each, from before the first look until the wait is over. They never change.
create table workflow_dependencies (
    wait_id bigint not null,
    place integer not null,
    instance_id bigint not null,
    step_run_id bigint not null,
    awaited_id bigint not null,
    is_needed boolean not null,
    created_at timestamptz not null,
    constraint wdep_place_unique primary key (wait_id, place)
);
create index wdep_awaited_idx on workflow_dependencies (awaited_id);
create index wdep_waiter_idx on workflow_dependencies (instance_id);

-- What a run brings to all its open children, until the last page of them has it.
create table workflow_cascades (
    instance_id bigint not null,
    seq bigint not null,
    kind varchar(16) not null,
    sender jsonb,
    cursor bigint not null default 0,
    created_at timestamptz not null,
    constraint wcas_seq_unique primary key (instance_id, seq),
    constraint wcas_kind_check check (kind in ('pause', 'resume'))
);
