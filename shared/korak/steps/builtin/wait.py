"""wait: parks until an event, a signal or several, a condition, or a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal, cast

from korak.errors import Issue, StepFailed
from korak.graphs.conditions import Condition, compile_condition
from korak.graphs.contracts import Scope
from korak.graphs.values import Value, compile_value
from korak.model import Json, JsonObject, SignalKind
from korak.steps import moments
from korak.steps.builtin import delay, shapes
from korak.steps.builtin.matching import check_match, read_match
from korak.steps.pure import Completed, Entry, Parked, PureResult, PureType
from korak.steps.results import NEXT, Outcome
from korak.steps.waits import TIMED_OUT, Mode, Signal, WaitSpec

FORMS = ("event", "signal", "signals", "condition", "for", "until")
POLL_FLOOR: Final = timedelta(minutes=1)
MAX_NAME: Final = 191

HUMANS: Final = ("approval", "input", "decision")
"""What a wait may ask of a person. A decision's first signal approves, its second one rejects."""

_EXTRAS = {
    "match": ("event", "signal", "signals"),
    "correlation": ("signal", "signals"),
    "since": ("event",),
    "mode": ("signals",),
    "poll": ("condition",),
    "result": ("event", "signal", "signals"),
    "human": ("signal", "signals"),
}

_OUTPUT: JsonObject = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "payload": {},
        "signals": {"type": "object"},
        "due_at": {"type": "string", "format": "date-time"},
    },
}
"""Open, since a `result` may give anything."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A wait's config, compiled: the form that is written, and what goes with it."""

    form: str
    value: Value
    match: Value | None
    condition: Condition | None
    poll: Value | None
    result: Value | None
    timeout: Value | None
    raw: JsonObject


class WaitStep(PureType[Waiting]):
    """Leaves by `next` when what it waits for has come, by `timed_out` when its time limit has passed.

    `human` tells whom it asks: an approval or an input is the one signal that is waited for, a decision one of two.
    `result` is a value that makes the output of what came (`signal.name`, `signal.payload`): an object, or a list of
    objects that are put together, the later ones on top.
    """

    key = "wait"
    label = "Wait"
    description: str | None = "Waits for an event, a signal, a condition or a time."
    parks = True
    config_schema: JsonObject = shapes.shape(
        {
            "event": shapes.titled(shapes.VALUE, "Event"),
            "signal": shapes.titled(shapes.VALUE, "Signal"),
            "signals": shapes.titled(shapes.VALUE, "Signals"),
            "condition": shapes.titled(shapes.CONDITION, "Condition"),
            "for": shapes.titled(shapes.DURATION, "For"),
            "until": shapes.titled(shapes.VALUE, "Until"),
            "match": {"title": "Match", "type": "object", "additionalProperties": shapes.VALUE},
            "correlation": {"title": "Same in payload and state", "type": "string", "format": "field-path"},
            "since": {"title": "Look back", "enum": ["now"]},
            "mode": {"title": "Wait for", "enum": ["all", "any"], "default": "all"},
            "poll": shapes.titled(shapes.DURATION, "Look every"),
            "result": shapes.titled(shapes.VALUE, "Output"),
            "timeout": shapes.titled(shapes.VALUE, "No longer than"),
            "human": {"title": "Put to a person as", "enum": [*HUMANS]},
        }
    )
    output_schema: JsonObject | None = _OUTPUT

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """`timed_out` only where there is a time limit."""
        limit = (Outcome(TIMED_OUT, label="Timed out"),) if "timeout" in config else ()
        return (Outcome(NEXT, label="Then"), *limit)

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """One form, with nothing that belongs to another."""
        return [
            *shapes.exactly_one(config, FORMS),
            *_check_extras(config),
            *_check_human(config),
            *_check_names(config),
            *_check_match(config),
            *delay.check_time(config, "until"),
            *_check_timeout(config),
        ]

    def compile(self, config: JsonObject) -> Waiting:
        """Each member by what it is."""
        form = next((name for name in FORMS if name in config), FORMS[0])
        is_condition = form == "condition"
        return Waiting(
            form=form,
            value=compile_value(None if is_condition else config.get(form)),
            match=_compile(config, "match"),
            condition=compile_condition(config["condition"]) if is_condition else None,
            poll=_compile(config, "poll"),
            result=_compile(config, "result"),
            timeout=_compile(config, "timeout"),
            raw=config,
        )

    def begin(self, program: Waiting, entry: Entry) -> PureResult:
        """Park, unless there is nothing left to wait for."""
        if program.form in delay.MEMBERS:
            result = delay.park_until(delay.Pause(program.form, program.value), entry)
        elif program.condition is not None:
            result = Completed() if program.condition.holds(entry.roots) else Parked(_poll(program, entry))
        else:
            result = Parked(_listen(program, entry).correlate(entry.roots.get("state") or {}))
        return _limit(result, program, entry) if isinstance(result, Parked) else result

    def proceed(self, program: Waiting, entry: Entry, signal: Signal) -> PureResult:
        """What came is the output."""
        match signal.kind:
            case SignalKind.EVENT | SignalKind.SIGNAL if program.result is not None:
                return Completed(output=_make_output(program.result, entry, signal))
            case SignalKind.EVENT | SignalKind.SIGNAL if program.form == "signals":
                return Completed(output={"signals": signal.payload})
            case SignalKind.EVENT | SignalKind.SIGNAL:
                return Completed(output={"key": signal.name, "payload": signal.payload})
            case SignalKind.CONDITION:
                return Completed()
            case SignalKind.TIMEOUT:
                return Completed(signal.outcome or TIMED_OUT)
            case _:
                return super().proceed(program, entry, signal)


def _compile(config: JsonObject, member: str) -> Value | None:
    return compile_value(config[member]) if member in config else None


def _make_output(result: Value, entry: Entry, signal: Signal) -> JsonObject:
    came: JsonObject = {"name": signal.name, "payload": signal.payload}
    made = result.resolve({**entry.roots, "signal": came})
    output: JsonObject = {}
    for part in made if isinstance(made, list) else [made]:
        if not isinstance(part, dict | None):
            raise StepFailed("invalid_input", pointer="/result", detail="an object is expected")
        output |= part or {}
    return output


def _listen(program: Waiting, entry: Entry) -> WaitSpec:
    name = program.value.resolve(entry.roots)
    match = None if program.match is None else read_match(program.match.resolve(entry.roots), "/match")
    correlation = cast("str | None", program.raw.get("correlation"))
    if program.form == "event":
        since = cast("Literal['now'] | None", program.raw.get("since"))
        return WaitSpec.event(_name(name, "/event"), match, since=since)
    if program.form == "signal":
        return WaitSpec.signal(_name(name, "/signal"), match, correlation=correlation)
    names = name if isinstance(name, list) and name else [None]
    mode = cast("Mode", program.raw.get("mode", "all"))
    return WaitSpec.signals([_name(each, "/signals") for each in names], mode, match, correlation=correlation)


def _name(name: Json, pointer: str) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise StepFailed("invalid_input", pointer=pointer, detail=f"a name of 1 to {MAX_NAME} characters is expected")
    return name


def _poll(program: Waiting, entry: Entry) -> WaitSpec:
    poll: Json = None
    if program.poll is not None:
        given = program.poll.resolve(entry.roots)
        poll = moments.at_least(given, POLL_FLOOR, pointer="/poll", now=entry.now, timezone=entry.timezone)
    return WaitSpec.condition(program.raw["condition"], poll)


def _limit(parked: Parked, program: Waiting, entry: Entry) -> Parked:
    if program.timeout is None:
        return parked
    raw = program.timeout.resolve(entry.roots)
    due = moments.read_due(raw, pointer="/timeout", now=entry.now, timezone=entry.timezone)
    return Parked(parked.spec.timeout(due), parked.output)


def _check_extras(config: JsonObject) -> list[Issue]:
    return [
        shapes.wrong(f"/{extra}", f"{extra} goes with {' or '.join(forms)}.")
        for extra, forms in _EXTRAS.items()
        if extra in config and not shapes.list_given(config, forms)
    ]


def _check_human(config: JsonObject) -> list[Issue]:
    human, names = config.get("human"), config.get("signals")
    if human is None:
        return []
    if human != "decision":
        return [] if "signal" in config else [shapes.wrong("/human", f"An {human} is one signal.")]
    is_two = isinstance(names, list) and not shapes.is_form(names) and len(names) == 2 and config.get("mode") == "any"
    return [] if is_two else [shapes.wrong("/human", "A decision is any of two signals: one approves, one rejects.")]


def _check_names(config: JsonObject) -> list[Issue]:
    issues = [
        shapes.wrong(f"/{form}", f"A name of 1 to {MAX_NAME} characters is expected.")
        for form in ("event", "signal")
        if form in config and not (shapes.is_form(config[form]) or _is_name(config[form]))
    ]
    names = config.get("signals", [""])
    if "signals" not in config or shapes.is_form(names):
        return issues
    if not isinstance(names, list) or not names or not all(_is_name(name) or shapes.is_form(name) for name in names):
        return [*issues, shapes.wrong("/signals", f"A list of names of 1 to {MAX_NAME} characters is expected.")]
    literal = [name for name in names if isinstance(name, str)]
    return (
        issues if len(set(literal)) == len(literal) else [*issues, shapes.wrong("/signals", "A name is given twice.")]
    )


def _check_match(config: JsonObject) -> list[Issue]:
    issues = list(check_match(config["match"], "/match")) if "match" in config else []
    if str(config.get("correlation")).startswith("_"):
        issues.append(shapes.wrong("/correlation", "Keys that begin with _ never enter the state."))
    return issues


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and bool(name.strip()) and len(name) <= MAX_NAME


def _check_timeout(config: JsonObject) -> list[Issue]:
    value = config.get("timeout")
    if value is None or shapes.is_form(value):
        return []
    try:
        moments.read_due(value, pointer="/timeout", now=moments.EPOCH, timezone="UTC")
    except StepFailed as error:
        return [shapes.wrong("/timeout", str(error.params["detail"]))]
    return []
