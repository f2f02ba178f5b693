-- Rows of the inbox are done.
delete from workflow_inbox b where b.id = any(:ids::bigint[])
