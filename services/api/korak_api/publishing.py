"""Changing definitions: drafts under If-Match, versions frozen, one definition's row locked at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from korak.errors import Conflict, Invalid, Issue, NotFound, Stale, Unconditional
from korak.graphs.checksum import checksum
from korak.graphs.freezing import freeze
from korak.graphs.shape import parse
from korak.graphs.validation import Report, validate
from korak.model import APP_WIDE, DefinitionStatus, JsonObject
from korak.store import definitions, versions
from korak.store.database import Connection
from korak.store.definitions import Definition
from korak.store.versions import Version
from korak_api.operations import Call
from korak_api.rendering import show_time

ANY_TAG = "*"
MAX_KEY = 100
"""Characters of a definition's key."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """The version that a graph is, its definition's key, whether it is new, and what is odd about the graph."""

    version: Version
    key: str
    is_new: bool
    warnings: tuple[Issue, ...]


async def create(call: Call, connection: Connection, document: JsonObject) -> Definition:
    """A new definition with its draft. Raises Conflict where the key is taken, by a deleted one too."""
    parse(document, call.resources.limits)
    key = str(document["key"])
    if len(key) > MAX_KEY:
        raise _refuse_key(f"It has {MAX_KEY} characters at most")
    made = await definitions.add(connection, call.reach.owner, key, document, now=call.now)
    if made is None:
        raise Conflict("definition_exists", key=key)
    await versions.keep_draft(connection, made, key, document, now=call.now)
    return await lock(call, connection, key)


async def save(call: Call, connection: Connection, key: str, document: JsonObject) -> tuple[Definition, bool]:
    """The definition with this draft, and whether it is new. What is overwritten must be named by If-Match."""
    parse(document, call.resources.limits)
    if document["key"] != key:
        raise _refuse_key(f"It is {key}, as in the address")
    standing = await definitions.lock(connection, call.owner_scope, key)
    given = call.headers.get("if-match")
    if standing is None:
        if given is not None:
            raise Stale(actual=None)
        return await create(call, connection, document), True
    check_match(standing, given)
    if standing.status is DefinitionStatus.ARCHIVED:
        raise Conflict("definition_archived", key=key)
    await _keep(call, connection, standing, document)
    return await lock(call, connection, key), False


def _refuse_key(detail: str) -> Invalid:
    return Invalid("invalid_document", issues=[Issue("invalid_value", "/key", {"detail": detail})], count=1)


async def _keep(call: Call, connection: Connection, standing: Definition, document: JsonObject) -> None:
    """Keep the document as the draft; one that is the published graph to the letter needs none."""
    if standing.published_checksum == checksum(document) and standing.version is not None:
        current = await versions.get_version(connection, standing.id, standing.version)
        if current is not None and current.graph == document:
            await versions.drop_draft(connection, standing.id)
            return
    await versions.keep_draft(connection, standing.id, standing.key, document, now=call.now)


def check_match(standing: Definition, given: str | None) -> None:
    """Whether If-Match names what stands there. Raises Unconditional without it, Stale where it has changed since."""
    if given is None:
        raise Unconditional
    tags = [tag.strip().removeprefix("W/").strip('"') for tag in given.split(",")]
    if ANY_TAG not in tags and standing.checksum not in tags:
        raise Stale(actual=standing.checksum)


async def publish(call: Call, connection: Connection, key: str) -> tuple[Definition, tuple[Issue, ...]]:
    """Freeze the draft as the next version, and say what is odd about it.

    The same checksum as the current version's changes nothing.
    """
    standing = await lock(call, connection, key)
    if standing.status is DefinitionStatus.ARCHIVED:
        raise Conflict("definition_archived", key=key)
    draft = await versions.get_draft(connection, standing.id)
    if draft is None or draft.checksum == standing.published_checksum:
        return standing, list_warnings(call, standing.graph)
    report = check(call, draft.graph)
    contracts = freeze(draft.graph, call.resources.catalogue)
    user = call.credential.user
    number = await versions.publish(connection, standing, draft, contracts=contracts, publisher=user, now=call.now)
    return replace(await lock(call, connection, key), version=number), report.warnings


def list_warnings(call: Call, document: JsonObject) -> tuple[Issue, ...]:
    """What is odd about a document that was published before."""
    return validate(document, call.resources.catalogue, call.resources.limits).warnings


def check(call: Call, document: JsonObject) -> Report:
    """The report on a document that may be published. Raises Invalid with all that is wrong."""
    report = validate(document, call.resources.catalogue, call.resources.limits)
    if not report.is_publishable:
        raise Invalid("invalid_document", issues=report.issues, count=len(report.issues))
    return report


async def freeze_version(call: Call, connection: Connection, key: str, document: JsonObject) -> Frozen:
    """The version that this document is; it doesn't become current.

    A definition that isn't there is made, with the document as its draft. The application's own is meant where the
    owner has none and the credential reaches it.
    """
    parse(document, call.resources.limits)
    if document["key"] != key:
        raise _refuse_key(f"It is {key}, as in the address")
    standing = await _lock_or_make(call, connection, key, document)
    if standing.status is DefinitionStatus.ARCHIVED:
        raise Conflict("definition_archived", key=key)
    known = await versions.find_version(connection, standing.id, checksum(document))
    if known is not None:
        return Frozen(known, standing.key, is_new=False, warnings=list_warnings(call, document))
    report = check(call, document)
    contracts, user = freeze(document, call.resources.catalogue), call.credential.user
    made = await versions.freeze(connection, standing.id, document, contracts=contracts, publisher=user, now=call.now)
    return Frozen(made, standing.key, is_new=True, warnings=report.warnings)


async def _lock_or_make(call: Call, connection: Connection, key: str, document: JsonObject) -> Definition:
    standing = await definitions.lock(connection, call.owner_scope, key)
    if standing is not None:
        return standing
    if await definitions.get(connection, call.owner_scope, key) is not None:
        if not call.credential.is_app_wide:
            raise Conflict("definition_app_wide", key=key)
        shared = await definitions.lock(connection, APP_WIDE, key)
        if shared is not None:
            return shared
    try:
        return await create(call, connection, document)
    except Conflict:  # somebody else has made it in this moment, or it was deleted
        standing = await definitions.lock(connection, call.owner_scope, key)
        if standing is None:
            raise
        return standing


async def activate(
    call: Call, connection: Connection, key: str, number: int, *, only_newer: bool = False
) -> Definition:
    """Make another version the current one. Raises Conflict for one that is older, where only a newer one may be."""
    standing = await lock(call, connection, key)
    if standing.status is DefinitionStatus.ARCHIVED:
        raise Conflict("definition_archived", key=key)
    version = await versions.get_version(connection, standing.id, number)
    if version is None:
        raise NotFound("version_not_found", key=key, number=number)
    if version.id == standing.current_version_id:
        return standing
    if only_newer:
        await _check_newer(connection, standing, version)
    await versions.activate(connection, standing, version, now=call.now)
    return await lock(call, connection, key)


async def _check_newer(connection: Connection, standing: Definition, version: Version) -> None:
    current = None
    if standing.version is not None:
        current = await versions.get_version(connection, standing.id, standing.version)
    if current is not None and version.number < current.number:
        raise Conflict(
            "version_older",
            key=standing.key,
            number=version.number,
            checksum=version.checksum,
            published_at=show_time(version.published_at),
            current=current.number,
            current_checksum=current.checksum,
            current_published_at=show_time(current.published_at),
        )


async def archive(call: Call, connection: Connection, key: str) -> Definition:
    """Take no more starts; what runs goes on."""
    standing = await lock(call, connection, key)
    if standing.status is DefinitionStatus.DRAFT:
        raise Conflict("definition_not_published", key=key)
    if standing.status is not DefinitionStatus.ARCHIVED:
        await definitions.change(connection, standing.id, now=call.now, status=DefinitionStatus.ARCHIVED)
    return await lock(call, connection, key)


async def restore(call: Call, connection: Connection, key: str) -> Definition:
    """Take starts again."""
    standing = await lock(call, connection, key)
    if standing.status is not DefinitionStatus.ARCHIVED:
        raise Conflict("definition_not_archived", key=key)
    await definitions.change(connection, standing.id, now=call.now, status=DefinitionStatus.ACTIVE)
    return await lock(call, connection, key)


async def lock(call: Call, connection: Connection, key: str) -> Definition:
    """The owner's own definition, locked. Raises NotFound."""
    standing = await definitions.lock(connection, call.owner_scope, key)
    if standing is None:
        raise NotFound("definition_not_found", key=key)
    return standing
