-- What a streaming step has yielded, by visit: read by its next attempt and by whoever looks on, gone with its record.
create table workflow_chunks (
    instance_id bigint not null,
    execution_id varchar(26) not null,
    index integer not null,
    node_id varchar(64) not null,
    visit integer not null,
    attempt smallint not null,
    content text not null,
    created_at timestamptz not null,
    constraint workflow_chunks_pkey primary key (instance_id, execution_id, index),
    constraint wchunk_index_check check (index >= 0)
);

-- What a run keeps under a name, beside its state. One from outside belongs to no visit.
create table workflow_artifacts (
    instance_id bigint not null,
    key varchar(191) not null,
    kind varchar(8) not null,
    content bytea not null,
    size integer not null,
    metadata jsonb,
    node_id varchar(64),
    visit integer,
    execution_id varchar(26),
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint workflow_artifacts_pkey primary key (instance_id, key),
    constraint wart_kind_check check (kind in ('json', 'text', 'bytes')),
    constraint wart_size_check check (size = octet_length(content)),
    constraint wart_visit_check check ((visit is null) = (node_id is null) and (visit is null) = (execution_id is null))
);
