-- The columns of an instance that a step doesn't change: commands, failures, deadlines. Under its lock.
update workflow_instances i set
    cancel_reason = instance.cancel_reason,
    failure_message = instance.failure_message,
    failure_params = instance.failure_params,
    failure_category = instance.failure_category,
    failed_node_id = instance.failed_node_id,
    paused_at = instance.paused_at,
    deadline_at = instance.deadline_at,
    deadline_seconds = instance.deadline_seconds
from rows(instance: id bigint, cancel_reason text, failure_message text, failure_params jsonb, failure_category varchar,
    failed_node_id varchar, paused_at timestamptz, deadline_at timestamptz, deadline_seconds double precision)
where i.id = instance.id
