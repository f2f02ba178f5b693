-- What a run did once where it was exported comes with it under a key that is made of the run's own id: whoever brings in a
-- document can't say what another run has done.
create or replace function effect_begin(for_step bigint, with_token varchar, digest char(64), at timestamptz) returns jsonb
    language plpgsql security definer as $$
declare
    found_result jsonb;
    owner bigint;
begin
    select s.instance_id into owner from workflow_step_runs s
        where s.id = for_step and s.claim_token = with_token and s.status = 'running';
    if owner is null then
        raise exception 'stale_attempt' using errcode = 'KR001';
    end if;
    select jsonb_build_object('result', k.result) into found_result
        from workflow_instances i join workflow_idempotency_keys k on k.scope = 'effect'
            and k.key = encode(sha256(convert_to(concat_ws(chr(31), 'carried', i.ulid, digest), 'UTF8')), 'hex')
        where i.id = owner and k.is_done;
    if found then
        return found_result;
    end if;
    insert into workflow_idempotency_keys (scope, key, instance_id, is_done, created_at)
        values ('effect', digest, owner, false, at) on conflict (scope, key) do nothing;
    if found then
        return null;
    end if;
    select jsonb_build_object('result', k.result) into found_result from workflow_idempotency_keys k
        where k.scope = 'effect' and k.key = digest and k.is_done;
    return found_result;
end $$;

do $$
begin
    execute format('alter function effect_begin(bigint, varchar, char, timestamptz) set search_path = %I, pg_temp', current_schema());
end $$;
