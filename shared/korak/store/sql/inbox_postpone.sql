-- Have rows of the inbox looked at later. Those that replace a run remember which.
update workflow_inbox b set due_at = row.due_at, replaces = coalesce(row.replaces, b.replaces)
from rows(row: id bigint, due_at timestamptz, replaces varchar) where b.id = row.id
