"""scope: runs its body until that ends, one of its events comes, or its time is up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from korak.errors import Issue, StepFailed
from korak.graphs.contracts import Scope
from korak.graphs.values import Value, compile_value
from korak.model import Json, JsonObject
from korak.steps import moments
from korak.steps.builtin import shapes
from korak.steps.builtin.matching import check_match, read_match
from korak.steps.pure import Completed, Entry, Opened, PureResult, PureType
from korak.steps.results import NEXT, Outcome
from korak.steps.waits import TIMED_OUT, Signal, WaitSpec

RESERVED = frozenset({NEXT, "error"})
MAX_EVENTS = 20
MAX_NAME = 191


@dataclass(frozen=True, slots=True)
class Exits:
    """What ends the body from outside: events (name, match, outcome), and a time limit with its outcome."""

    events: tuple[tuple[Value, Value, str], ...]
    after: Value | None
    timed_out: str


class ScopeStep(PureType[Exits]):
    """Leaves by `next` when its body has ended, by an exit's outcome when that has come: then the body is cancelled.

    What the body has written enters the state either way.
    """

    key = "scope"
    label = "Scope"
    description: str | None = "Runs a body that events or a time limit may end."
    parks = True
    config_schema: JsonObject = shapes.shape(
        {
            "events": {
                "title": "Ends on",
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_EVENTS,
                "items": shapes.shape(
                    {
                        "event": shapes.titled(shapes.VALUE, "Event"),
                        "match": {"title": "Match", "type": "object", "additionalProperties": shapes.VALUE},
                        "outcome": {"title": "Outcome", "type": "string", "pattern": shapes.OUTCOME_KEY},
                    },
                    required=["event", "outcome"],
                ),
            },
            "timeout": {
                "title": "No longer than",
                **shapes.shape(
                    {
                        "after": shapes.titled(shapes.VALUE, "After"),
                        "outcome": {"title": "Outcome", "type": "string", "pattern": shapes.OUTCOME_KEY},
                    },
                    required=["after"],
                ),
            },
        }
    )

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """`next`, and one for each exit."""
        own = dict.fromkeys(_list_outcomes(config))
        return (Outcome(NEXT, label="Then"), *(Outcome(key) for key in own if key not in RESERVED))

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """An exit has an outcome of its own, and a name and a time that can be waited for."""
        issues = [
            shapes.wrong(f"/events/{number}/outcome", f"{exit_['outcome']} is taken.")
            for number, exit_ in enumerate(_list_events(config))
            if exit_.get("outcome") in RESERVED
        ]
        issues += [
            shapes.wrong(f"/events/{number}/event", f"A name of 1 to {MAX_NAME} characters is expected.")
            for number, exit_ in enumerate(_list_events(config))
            if not (shapes.is_form(exit_.get("event")) or _is_name(exit_.get("event")))
        ]
        for number, exit_ in enumerate(_list_events(config)):
            issues += check_match(exit_.get("match") or {}, f"/events/{number}/match")
        return [*issues, *_check_timeout(config)]

    def compile(self, config: JsonObject) -> Exits:
        """Each exit by what it is."""
        events = tuple(
            (compile_value(exit_["event"]), compile_value(exit_.get("match") or {}), str(exit_["outcome"]))
            for exit_ in _list_events(config)
        )
        limit = _get_timeout(config)
        after = None if limit is None else compile_value(limit["after"])
        return Exits(events, after, str((limit or {}).get("outcome", TIMED_OUT)))

    def begin(self, program: Exits, entry: Entry) -> PureResult:
        """Begin the body, and listen."""
        spec = WaitSpec(())
        for number, (event, match, outcome) in enumerate(program.events):
            name = event.resolve(entry.roots)
            if not _is_name(name):
                detail = f"a name of 1 to {MAX_NAME} characters is expected"
                raise StepFailed("invalid_input", pointer=f"/events/{number}/event", detail=detail)
            wanted = read_match(match.resolve(entry.roots), f"/events/{number}/match")
            listening = WaitSpec.event(str(name), wanted, outcome=outcome)
            spec = WaitSpec((*spec.items, *listening.items))
        if program.after is not None:
            raw = program.after.resolve(entry.roots)
            due = moments.read_due(raw, pointer="/timeout/after", now=entry.now, timezone=entry.timezone)
            spec = spec.timeout(due, program.timed_out)
        return Opened(1, spec=spec if spec.items else None)

    def proceed(self, program: Exits, entry: Entry, signal: Signal) -> PureResult:
        """An exit has come."""
        outcome = signal.outcome or program.timed_out
        return Completed(outcome, {"key": signal.name, "payload": signal.payload} if signal.name else {})


def _list_events(config: JsonObject) -> list[JsonObject]:
    events = config.get("events")
    return [exit_ for exit_ in events if isinstance(exit_, dict)] if isinstance(events, list) else []


def _get_timeout(config: JsonObject) -> JsonObject | None:
    limit = config.get("timeout")
    return limit if isinstance(limit, dict) else None


def _list_outcomes(config: JsonObject) -> list[str]:
    limit = _get_timeout(config)
    last = [] if limit is None else [str(limit.get("outcome", TIMED_OUT))]
    return [str(exit_.get("outcome")) for exit_ in _list_events(config)] + last


def _is_name(name: Json) -> bool:
    return isinstance(name, str) and bool(name.strip()) and len(name) <= MAX_NAME


def _check_timeout(config: JsonObject) -> list[Issue]:
    limit = _get_timeout(config)
    if limit is None:
        return []
    if limit.get("outcome") in RESERVED:
        return [shapes.wrong("/timeout/outcome", f"{limit['outcome']} is taken.")]
    after = limit.get("after")
    if shapes.is_form(after):
        return []
    try:
        moments.read_due(after, pointer="/timeout/after", now=moments.EPOCH, timezone="UTC")
    except StepFailed as error:
        return [shapes.wrong("/timeout/after", str(error.params["detail"]))]
    return []
