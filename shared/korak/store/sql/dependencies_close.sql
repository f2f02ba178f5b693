-- Waits for other runs that are over: nobody is looked for on their behalf.
delete from workflow_dependencies d where d.wait_id = any(:waits::bigint[])
