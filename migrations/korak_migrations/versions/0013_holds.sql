-- The version of what is held: raised by everything that puts, releases or ends a hold. A step begins only while the
-- version stands by which that was decided. One row: a hot statement reads it without an index.
create table hold_state (
    id boolean primary key default true,
    version bigint not null,
    constraint hstate_single_check check (id)
);

insert into hold_state (version) values (0);
