-- Which attempts still run under the token that their engine holds.
select s.id from rows(held: id bigint, claim_token varchar)
join workflow_step_runs s on s.id = held.id and s.claim_token = held.claim_token and s.status = 'running'
