"""What the types that start other runs or wait for them ask of the engine, which alone can see other runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from korak.errors import StepFailed
from korak.model import Json, JsonObject
from korak.steps.results import StepResult
from korak.steps.waits import Due

PAGE = 500
"""How many runs are started in one transaction."""

Mode: TypeAlias = Literal["all", "any", "quorum"]


@dataclass(frozen=True, slots=True)
class Starting(StepResult):
    """Start runs of a definition, one for each of `inputs`; the one where it `awaits` is waited for.

    Behind those of `before`, which this visit has started already; `rest` more will follow. Their ULIDs are the output
    under `result_key`, a list of them unless `is_single`.
    """

    definition: str
    inputs: tuple[JsonObject, ...]
    result_key: str
    number: int | None = None
    checksum: str | None = None
    before: tuple[str, ...] = ()
    rest: int = 0
    is_single: bool = False
    group: str | None = None
    awaits: bool = False
    timeout: Due = None


@dataclass(frozen=True, slots=True)
class Awaiting(StepResult):
    """Wait for other runs of the owner: those of these ULIDs, or those that this run has started under a group."""

    ulids: tuple[str, ...] = ()
    group: str | None = None
    mode: Mode = "all"
    quorum: int = 1
    timeout: Due = None


@dataclass(frozen=True, slots=True)
class Collecting(StepResult):
    """Read what has become of the runs that were waited for: enough have completed.

    Of one run its own result; of several a result for each ULID, only the first in their order in the mode `any`. With
    `merges` the results are put together, the later ones on top.
    """

    ulids: tuple[str, ...]
    mode: Mode = "all"
    merges: bool = False


def make_input(base: JsonObject, without: Sequence[str]) -> JsonObject:
    """What every child is given: public keys, but for some."""
    return {key: value for key, value in base.items() if not key.startswith("_") and key not in without}


def add_item(base: JsonObject, item: Json, index: int, *, payload_key: str, index_key: str | None) -> JsonObject:
    """The input of the child of one item: an object's public keys on top, anything else under the payload key."""
    own: JsonObject = make_input(item, ()) if isinstance(item, dict) else {payload_key: item}
    return {**base, **own} if index_key is None else {**base, **own, index_key: index}


def collect(wanted: Collecting, results: dict[str, Json]) -> JsonObject:
    """The output of a wait whose completed runs have these results, by ULID."""
    done = [ulid for ulid in wanted.ulids if ulid in results]
    if wanted.mode == "any":
        done = done[:1]
    if wanted.merges:
        merged: JsonObject = {}
        for ulid in done:
            merged |= _as_object(results[ulid])
        return merged
    if len(wanted.ulids) == 1:
        return _as_object(results[done[0]]) if done else {}
    return {ulid: results[ulid] for ulid in done}


def _as_object(result: Json) -> JsonObject:
    return result if isinstance(result, dict) else {"result": result}


def read_ulids(given: Json) -> tuple[str, ...]:
    """One ULID or a list of them, each once. Raises `invalid_input`."""
    found = [given] if isinstance(given, str) else given
    if not isinstance(found, list) or not all(isinstance(ulid, str) and ulid.strip() for ulid in found):
        raise StepFailed("invalid_input", pointer="/ids", detail="the id of a run, or a list of them, is expected")
    return tuple(dict.fromkeys(str(ulid).strip().upper() for ulid in found))
