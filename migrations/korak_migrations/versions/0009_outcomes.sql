-- As long as a step's outcome; widening a varchar rewrites nothing.
alter table workflow_scopes alter column outcome type varchar(64);
