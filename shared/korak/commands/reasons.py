"""Why something wasn't published, and what is odd about what was: as lines for a person, as fields for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from korak.commands.calling import Refusal, describe
from korak.errors import Issue, Problem


@dataclass(frozen=True, slots=True)
class Reason:
    """Why it was refused. `problems` have code, pointer and message."""

    lines: tuple[str, ...]
    problems: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, code: str, message: str, pointer: str = "") -> Reason:
        """One thing that the command itself has seen."""
        return cls((message,), (Issue(code, pointer).to_json() | {"message": message},))

    @classmethod
    def from_refusal(cls, refusal: Refusal, more: Sequence[str] = ()) -> Reason:
        """What the API said, with lines of one's own behind it for a person."""
        errors = refusal.body.get("errors") or (_show_whole(refusal.code, refusal.message, refusal.body.get("params")),)
        return cls((*refusal.lines, *more), tuple(errors))

    @classmethod
    def from_problem(cls, problem: Problem) -> Reason:
        """What was wrong before anything was sent."""
        errors = tuple(issue.to_json() for issue in problem.issues)
        whole = _show_whole(problem.code, problem.message, problem.params)
        return cls((f"{problem.message} ({problem.code})", *map(describe, errors)), errors or (whole,))


def _show_whole(code: str, message: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"code": code, "message": message, "pointer": "", "node": None, "edge": None, "params": dict(params or {})}
