-- What undoes a completed visit, pushed in the transaction that records it, at the number of the event that tells of it. Only
-- graphs with compensations have any. The index finds the newest that is left, however many were undone above it.
create table workflow_compensations (
    instance_id bigint not null,
    seq bigint not null,
    step_run_id bigint not null,
    scope_id bigint,
    node_id varchar(64) not null,
    visit integer not null,
    status varchar(16) not null,
    input jsonb,
    state jsonb not null,
    error jsonb,
    created_at timestamptz not null,
    constraint wcomp_seq_unique primary key (instance_id, seq),
    constraint wcomp_status_check check (status in ('kept', 'undoing', 'completed', 'failed'))
);
create index wcomp_left_idx on workflow_compensations (instance_id, seq) where status in ('kept', 'undoing');
