-- Write one limit's counters, under their lock.
update flow_keys set counters = :counters::integer[], counted_at = :counted_at::bigint where id = :id::bigint
