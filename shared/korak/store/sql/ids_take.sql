-- A block of ids of one table.
select nextval(pg_get_serial_sequence(:table::text, 'id')) as id from generate_series(1, :count::integer)
