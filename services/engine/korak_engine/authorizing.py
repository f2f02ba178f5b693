"""Asking the authorizer, on behalf of the run or of who started it, whether a step may do what it is about to do."""

from __future__ import annotations

from korak.errors import StepFailed
from korak.model import ActorMode, Json
from korak.owners.authorizer import AuthorizationRequest, Authorizer
from korak.owners.scopes import Owner
from korak_engine.work import Work


async def authorize(authorizer: Authorizer, work: Work, ability: str | None, arguments: tuple[Json, ...] = ()) -> None:
    """Ask whether the work's actor has the ability. Raises `authorization_denied`, which isn't tried again (AU-8)."""
    denial = await authorizer.authorize(_make_request(work, ability, arguments))
    if denial is not None:
        raise StepFailed("authorization_denied", detail=denial.detail)


def _make_request(work: Work, ability: str | None, arguments: tuple[Json, ...]) -> AuthorizationRequest:
    """What the authorizer is asked (AU-13)."""
    instance, step = work.snapshot.instance, work.step
    is_for_user = instance.actor_mode is ActorMode.ON_BEHALF_OF
    return AuthorizationRequest(
        ability=ability,
        owner=get_owner(work),
        actor=instance.actor_mode,
        user=instance.starter_id if is_for_user else None,
        instance=instance.ulid,
        definition=work.snapshot.plan.key,
        node=step.node_id,
        step_type=step.node_type,
        arguments=arguments,
    )


def get_owner(work: Work) -> Owner:
    """Whose the instance is."""
    instance = work.snapshot.instance
    return Owner(instance.owner_type, instance.owner_id)
