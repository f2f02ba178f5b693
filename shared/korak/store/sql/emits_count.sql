-- Count what an event was delivered to; with the last page it is matched.
update workflow_emits set matched = matched + :told::integer, matched_at = case when :is_done::boolean then :now::timestamptz end
where id = :id::bigint
