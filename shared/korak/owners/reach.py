"""How far a credential reaches among owners."""

from __future__ import annotations

from dataclasses import dataclass

from korak.errors import Forbidden
from korak.owners.scopes import APPLICATION, Owner, parse_owner
from korak.owners.tokens import Credential


@dataclass(frozen=True, slots=True)
class Reach:
    """Whose things a request is about: one owner's, or, for lists, everybody's."""

    owner: Owner
    is_over_all: bool = False


def get_reach(credential: Credential, named: str | None) -> Reach:
    """What `credential` reaches when the request names an owner (`Korak-Owner`).

    A token of one owner is always that owner; it may name itself. An app-wide token names an owner, or `*` for lists
    over all; without a name it reaches the application's own things. Raises Invalid (`invalid_owner`), or Forbidden
    (`owner_not_allowed`) where another owner is named.
    """
    wanted = None if named is None else parse_owner(named)
    if credential.is_app_wide:
        return Reach(wanted or APPLICATION, is_over_all=wanted == APPLICATION)
    if wanted is not None and wanted != credential.owner:
        raise Forbidden("owner_not_allowed", owner=wanted.scope)
    return Reach(credential.owner)
