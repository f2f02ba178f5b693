-- Make locked waiting steps ready, each sent right after the commit or left to the releaser.
update workflow_step_runs s set ready_at = :now::timestamptz, sent_at = step.sent_at, sends = 0
from rows(step: id bigint, sent_at timestamptz) where s.id = step.id
