"""The rule of publish about comparisons: what is compared with a literal must be able to be of its type (spec 16)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

from korak.errors import Issue
from korak.graphs import paths
from korak.graphs.paths import Malformed, Path
from korak.graphs.values import get_form
from korak.model import Json, JsonObject

SchemaOf: TypeAlias = Callable[[Path], Json]
"""The schema of what stands at a path, None where nobody says."""

ORDERS = frozenset({"gt", "gte", "lt", "lte"})
EQUALITIES = frozenset({"eq", "neq"})
TEXTS = frozenset({"starts_with", "ends_with"})


def check_comparisons(condition: Json, get_schema: SchemaOf) -> Iterator[Issue]:
    """The comparisons of a sound condition that can't hold, with pointers into it."""
    pending: list[tuple[Json, str]] = [(condition, "")]
    while pending:
        raw, pointer = pending.pop()
        if not isinstance(raw, dict):
            continue
        for key in ("all", "any"):
            terms = raw.get(key)
            if isinstance(terms, list):
                pending.extend((term, f"{pointer}/{key}/{index}") for index, term in enumerate(terms))
        if "not" in raw:
            pending.append((raw["not"], f"{pointer}/not"))
        if "op" in raw and get_form(raw.get("value")) is None:
            yield from _check(raw, pointer, get_schema)


def _check(raw: JsonObject, pointer: str, get_schema: SchemaOf) -> Iterator[Issue]:
    try:
        path = paths.parse(raw["ref"])
    except Malformed:
        return
    kinds = _get_kinds(get_schema(path))
    if kinds is None or "default" in raw:
        return
    op, value = cast("str", raw["op"]), raw.get("value")
    wanted = _get_wanted(op, value)
    if wanted is not None and not kinds & wanted:
        given = f"{paths.render(path)} is of type {' or '.join(sorted(kinds))}"
        detail = f"{given}, which {op} can't compare with {_get_kind(value)}."
        yield Issue("type_mismatch", f"{pointer}/value", {"detail": detail})


def _get_wanted(op: str, value: Json) -> frozenset[str] | None:
    """The types that something may have to be compared with the literal; None where any will do."""
    kind = _get_kind(value)
    if op in EQUALITIES:
        return None if value is None else frozenset({kind})
    if op in ORDERS:
        return frozenset({kind}) & {"number", "string"}
    if op in TEXTS:
        return frozenset({"string"}) if kind == "string" else frozenset()
    if op == "contains":
        return frozenset({"array", "string"}) if kind == "string" else frozenset({"array"})
    return None


def _get_kinds(schema: Json) -> frozenset[str] | None:
    """The types that a schema allows, whole numbers as numbers; None where it allows any, or null."""
    declared = schema.get("type") if isinstance(schema, dict) else None
    names = [declared] if isinstance(declared, str) else declared
    if not isinstance(names, list) or "null" in names:
        return None
    return frozenset("number" if name == "integer" else cast("str", name) for name in names)


def _get_kind(value: Json) -> str:
    if value is None:
        return "null"
    kinds: dict[type, str] = {bool: "boolean", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "number")
