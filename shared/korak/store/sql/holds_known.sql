-- Whether there is a step type or queue of that name: an engine has announced it, ever, or a published version uses it
-- (an owner's own, or one of the application). A type that is decided on the way begins nowhere.
select exists (
    select from engines e
    where case :kind::varchar when 'queue' then jsonb_exists(e.queues, :name::text)
        else exists (select from jsonb_array_elements_text(e.types) type where split_part(type, '@', 1) = :name::text) end
) or exists (
    select from queues q where :kind::varchar = 'queue' and q.name = :name::varchar
) or exists (
    select from workflow_versions v join workflow_definitions d on d.id = v.definition_id
    where v.contracts is not null and (:owner::varchar = '*' or d.owner_scope in ('*', :owner::varchar)) and exists (
        select from jsonb_each(v.contracts -> 'types') type
        where case :kind::varchar when 'queue' then type.value ->> 'queue' = :name::text
            else type.value ->> 'key' = :name::text and not (type.value ->> 'is_pure')::boolean end
    )
) or :kind::varchar = 'queue' and exists (
    select from workflow_versions v join workflow_definitions d on d.id = v.definition_id
    where v.contracts is not null and (:owner::varchar = '*' or d.owner_scope in ('*', :owner::varchar))
        and jsonb_path_exists(v.graph, 'lax $.**.queue ? (@ == $name)', jsonb_build_object('name', :name::text))
) as is_known
