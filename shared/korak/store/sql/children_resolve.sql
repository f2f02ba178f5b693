-- What a start of children names: the owner's own definition, else the application's, and the version that is asked for by its
-- number or checksum, else the current one.
select d.id as definition_id, d.status, v.id as version_id, v.checksum
from (
    select own.id, own.status, own.current_version_id from workflow_definitions own
    where own.owner_scope in (:owner_scope::varchar, '*') and own.key = :key::varchar and own.deleted_at is null
    order by own.owner_scope = '*' limit 1
) d
left join lateral (
    select v.id, v.checksum from workflow_versions v
    where v.definition_id = d.id and v.number is not null and case
        when :checksum::varchar is not null then v.checksum = :checksum::varchar
        when :number::integer is not null then v.number = :number::integer
        else v.id = d.current_version_id
    end
    order by v.number desc limit 1
) v on true
