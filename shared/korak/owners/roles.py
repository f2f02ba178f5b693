"""Which role may do what, as one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from korak.errors import Forbidden, Invalid
from korak.model import OwnerRole
from korak.owners.tokens import Credential


class Verb(StrEnum):
    """What a caller may want to do."""

    DEFINITIONS_READ = "definitions.read"
    DEFINITIONS_WRITE = "definitions.write"
    DEFINITIONS_PUBLISH = "definitions.publish"
    DEFINITIONS_ARCHIVE = "definitions.archive"
    INSTANCES_READ = "instances.read"
    INSTANCES_START = "instances.start"
    INSTANCES_SIGNAL = "instances.signal"
    INSTANCES_COMMAND = "instances.command"
    FAILURES_READ = "failures.read"
    EVENTS_EMIT = "events.emit"
    STATS_READ = "stats.read"
    TOKENS_MANAGE = "tokens.manage"
    OWNERS_MANAGE = "owners.manage"


READS: Final = frozenset({Verb.DEFINITIONS_READ, Verb.INSTANCES_READ})

VERBS: Final[Mapping[OwnerRole, frozenset[Verb]]] = MappingProxyType(
    {
        OwnerRole.VIEWER: READS,
        OwnerRole.PARTICIPANT: frozenset(),
        OwnerRole.STARTER: READS | {Verb.INSTANCES_START, Verb.INSTANCES_SIGNAL, Verb.EVENTS_EMIT},
        OwnerRole.OPERATOR: READS
        | {Verb.INSTANCES_COMMAND, Verb.INSTANCES_SIGNAL, Verb.FAILURES_READ, Verb.STATS_READ},
        OwnerRole.AUTHOR: READS
        | {Verb.DEFINITIONS_WRITE, Verb.DEFINITIONS_PUBLISH, Verb.DEFINITIONS_ARCHIVE, Verb.FAILURES_READ},
        OwnerRole.WORKER: frozenset(),
        OwnerRole.ADMIN: frozenset(Verb),
    }
)
"""A participant sees the tasks that are put to it and a worker the steps that it is handed: neither is a verb of these.

`failures.read` opens the text and the trace of an unknown exception; without it a failure shows its code and a generic
message.
"""


def is_allowed(roles: Iterable[OwnerRole], verb: Verb) -> bool:
    """Whether one of the roles may."""
    return any(verb in VERBS[role] for role in roles)


def require(credential: Credential, verb: Verb) -> None:
    """Raise Forbidden unless the credential may, naming the roles that would do."""
    if not is_allowed(credential.roles, verb):
        fitting = [role.value for role in OwnerRole if verb in VERBS[role]]
        raise Forbidden(verb=verb.value, role=" or ".join(fitting))


def parse_roles(names: Iterable[str]) -> frozenset[OwnerRole]:
    """The roles of those names, one at least. Raises Invalid (`invalid_role`)."""
    known = {role.value: role for role in OwnerRole}
    given = list(names)
    unknown = [name for name in given if name not in known]
    if unknown or not given:
        raise Invalid("invalid_role", given=str(unknown[0])[:100] if unknown else "", roles=", ".join(known))
    return frozenset(known[name] for name in given)
