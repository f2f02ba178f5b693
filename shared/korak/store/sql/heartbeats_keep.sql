-- Note that steps are alive, and how far they are. Under their tokens, without their instances' locks: never waiting.
with held as (
    select s.id, beat.heartbeat from rows(beat: id bigint, claim_token varchar, heartbeat jsonb)
    join workflow_step_runs s on s.id = beat.id and s.claim_token = beat.claim_token and s.status = 'running'
    for no key update of s skip locked
)
update workflow_step_runs s set heartbeat = held.heartbeat from held where s.id = held.id returning s.id
