-- The keys that a visit counts under, and what a step that is parked for one of them waits for. A step without limits has
-- none of it and stands in none of these indexes.
alter table workflow_step_runs
    add column flow jsonb,
    add column limit_key bigint,
    add column limit_ceiling integer,
    add column limit_weight integer,
    add column limit_until timestamptz;
create index wstep_limit_idx on workflow_step_runs (limit_key, priority desc, id) where parked_for = 'limit';
create index wstep_flow_idx on workflow_step_runs (queue, owner_scope, (flow ->> 0), priority desc, id)
    where ready_at is not null and sent_at is null and flow is not null;

alter table flow_keys add column idle_at timestamptz;
create index fkey_idle_idx on flow_keys (idle_at) where idle_at is not null;

create table flow_slots (
    id bigint generated always as identity primary key,
    flow_key_id bigint not null,
    instance_id bigint not null,
    step_run_id bigint,
    weight integer not null,
    taken_at timestamptz not null,
    constraint fslot_unique unique nulls not distinct (instance_id, step_run_id, flow_key_id),
    constraint fslot_weight_check check (weight > 0)
);
create index fslot_step_idx on flow_slots (step_run_id) where step_run_id is not null;

create table flow_weights (
    owner_scope varchar(191) primary key,
    weight integer not null,
    constraint fweight_weight_check check (weight between 1 and 1000)
);

create table holds (
    id bigint generated always as identity primary key,
    owner_scope varchar(191) not null,
    kind varchar(16) not null,
    name varchar(191) not null,
    reason text,
    until timestamptz,
    held_by jsonb,
    held_at timestamptz not null,
    released_at timestamptz,
    constraint hold_kind_check check (kind in ('definition', 'step_type', 'queue'))
);
create unique index hold_open_unique on holds (owner_scope, kind, name) where released_at is null;
