"""How a chain is dispatched: what a run may begin with, under which key, and through whom."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypedDict, TypeVar, Unpack, cast, overload

from korak.chains.given import misuse, show
from korak.chains.naming import read_name
from korak.errors import Invalid, Issue
from korak.graphs import hygiene
from korak.graphs.inputs import check_payload
from korak.model import JsonObject

if TYPE_CHECKING:
    from korak.chains.builder import Chain

MAX_KEY = 191
T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class DispatchOptions(TypedDict, total=False):
    """How a run is started.

    `idempotency_key`: under one that has started a run before, that run is the answer (known for 30 days). `labels` and
    `priority` (low, normal, high, urgent) are the run's, `execution_timeout` (seconds, ISO 8601) is how long it may
    take, `wait` how many seconds to wait for its end. `id` is the caller's own, `on_open` and `on_closed` say what
    becomes of a start where a run with that id is open or has ended.
    """

    idempotency_key: str | None
    labels: Sequence[str]
    priority: str
    execution_timeout: Any
    wait: float
    id: str
    on_open: str
    on_closed: str


class Client(Protocol[T_co]):
    """What a chain is dispatched through: `korak.client.AsyncKorak`, whose answer is awaited, or `Korak`."""

    def dispatch(
        self, chain: Chain, payload: Mapping[str, Any] | None = None, **options: Unpack[DispatchOptions]
    ) -> T_co:
        """Start a run, whose id is the answer."""
        ...


class Dispatched:
    """The part of a chain that starts its runs."""

    def __init__(self) -> None:
        self._idempotency_key: str | None = None

    def idempotency_key(self, key: str) -> Self:
        """The key of every dispatch that names none: all of them are one run. It's no part of the checksum."""
        self._idempotency_key = _read_key(key)
        return self

    @overload
    def dispatch(
        self,
        payload: Mapping[str, Any] | None = None,
        *,
        client: None = None,
        **options: Unpack[DispatchOptions],
    ) -> Coroutine[Any, Any, str]: ...

    @overload
    def dispatch(
        self,
        payload: Mapping[str, Any] | None = None,
        *,
        client: Client[T],
        **options: Unpack[DispatchOptions],
    ) -> T: ...

    def dispatch(
        self,
        payload: Mapping[str, Any] | None = None,
        *,
        client: Client[T] | None = None,
        **options: Unpack[DispatchOptions],
    ) -> T | Coroutine[Any, Any, str]:
        """Start a run with `payload` as the first state; its id, which is awaited unless the client is a `Korak`.

        The run is one of the version with this chain's checksum, which is published if nobody has done so, and doesn't
        become the current one by that. Without a client it is the one that the settings name. Raises Invalid, before
        anything is sent, for a payload that can't be a state.
        """
        chain = cast("Chain", self)
        if client is None:
            return _dispatch(chain, payload, options)
        return client.dispatch(chain, payload, **options)

    def prepare(self, payload: Mapping[str, Any] | None, options: DispatchOptions) -> DispatchOptions:
        """The options with the chain's own key where they name none. Raises Invalid for a payload that is no state."""
        if payload is not None and not isinstance(payload, Mapping):
            raise misuse(f"The payload of a dispatch is a mapping: {show(payload)} is none.")
        given = cast("JsonObject", dict(payload or {}))
        issue = hygiene.check_json(given)
        issues = [issue] if issue else check_payload(given, self._get_limits())
        if issues:
            raise Invalid("invalid_request", issues[0].message, issues=[_at_input(each) for each in issues])
        key = options.get("idempotency_key")
        return {**options, "idempotency_key": self._idempotency_key if key is None else _read_key(key)}

    def _get_limits(self) -> Mapping[str, int]:
        return {}


def _read_key(given: object) -> str:
    key = read_name(given, "An idempotency key")
    if len(key) > MAX_KEY or not key.isascii() or not key.isprintable():
        raise misuse(f"An idempotency key has {MAX_KEY} printable characters at most: {show(key)} isn't one.")
    return key


def _at_input(issue: Issue) -> Issue:
    return issue.at("/input")


async def _dispatch(chain: Chain, payload: Mapping[str, Any] | None, options: DispatchOptions) -> str:
    """Through a client of this one call."""
    from korak.client import AsyncKorak

    async with AsyncKorak() as client:
        return await client.dispatch(chain, payload, **options)
