-- Keep rows of the inbox that are wrong, with what is wrong.
update workflow_inbox b set failed_at = :now::timestamptz, error = row.error
from rows(row: id bigint, error jsonb) where b.id = row.id
