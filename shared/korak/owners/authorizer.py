"""The seam of authorization: who is asked before a side effect, and the answer where nobody was set up to give one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from korak.model import ActorMode, Json
from korak.owners.scopes import Owner


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What is asked (AU-13). `ability` is null where the step type names none; `user` where the system acts."""

    ability: str | None
    owner: Owner
    actor: ActorMode
    user: str | None
    instance: str
    definition: str
    node: str
    step_type: str
    subject: tuple[str, str] | None = None
    arguments: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Denial:
    """A no. The step fails for good as `authorization_denied` with this detail (AU-8)."""

    detail: str


class Authorizer(Protocol):
    """Asked before every side effect, with a null ability too (AU-4, AU-6)."""

    async def authorize(self, request: AuthorizationRequest) -> Denial | None:
        """None lets it pass."""
        ...


class DefaultAuthorizer:
    """Lets a null ability pass and denies every other: nobody has granted any (AU-6, AU-7)."""

    async def authorize(self, request: AuthorizationRequest) -> Denial | None:
        """None for a null ability."""
        if request.ability is None:
            return None
        return Denial(f"nobody was granted the ability {request.ability}")
