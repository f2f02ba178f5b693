-- What starts name: the owner's own definition, else the application's, and the version that is asked for, else the current one.
select wanted.place, d.id as definition_id, d.status, v.id as version_id, v.number, v.checksum
from rows(wanted: place integer, owner_scope varchar, key varchar, number integer, checksum varchar)
cross join lateral (
    select own.id, own.status, own.current_version_id from workflow_definitions own
    where own.owner_scope in (wanted.owner_scope, '*') and own.key = wanted.key and own.deleted_at is null
    order by own.owner_scope = '*' limit 1
) d
left join lateral (
    select current.id, current.number, current.checksum from workflow_versions current
    where wanted.number is null and wanted.checksum is null and current.id = d.current_version_id
    union all
    select asked.id, asked.number, asked.checksum from workflow_versions asked
    where asked.definition_id = d.id and asked.number = wanted.number
    union all
    (select pinned.id, pinned.number, pinned.checksum from workflow_versions pinned
    where pinned.definition_id = d.id and pinned.checksum = wanted.checksum and pinned.number is not null
    order by pinned.number desc limit 1)
) v on true
