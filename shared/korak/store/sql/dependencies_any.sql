-- Whether any run waits for others at all.
select exists (select from workflow_dependencies) as is_any
