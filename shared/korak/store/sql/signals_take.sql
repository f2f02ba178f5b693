-- Take deliveries, discard them, or keep signals for later. Under the instance's lock.
update workflow_signals s set
    taken_at = signal.taken_at,
    buffered_at = signal.buffered_at,
    discarded_at = signal.discarded_at
from rows(signal: id bigint, taken_at timestamptz, buffered_at timestamptz, discarded_at timestamptz)
where s.id = signal.id
