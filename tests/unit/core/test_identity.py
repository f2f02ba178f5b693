"""What a start under an id comes to, by what the id has (T-UNQ-1, T-UNQ-2)."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.identity import Admit, Identity, Replace, Run, Standing, Use, judge
from korak.errors import Conflict
from korak.model import InstanceStatus, OnClosed, OnOpen

OPEN = Run(1, "open", 1, 3, InstanceStatus.WAITING)
FAILED = Run(2, "failed", 1, 4, InstanceStatus.FAILED)
CANCELLED = Run(3, "cancelled", 1, 5, InstanceStatus.CANCELLED)
COMPLETED = Run(4, "completed", 1, 6, InstanceStatus.COMPLETED)


def ask(standing: Standing, *, replaces: str | None = None, **said: Any) -> Any:
    verdict = judge(Identity("A-17", replaces=replaces, **said), standing)
    return (verdict.code, verdict.params["instance"]) if isinstance(verdict, Conflict) else verdict


@pytest.mark.parametrize("on_open", OnOpen)
@pytest.mark.parametrize("on_closed", OnClosed)
def test_t_unq_1_an_id_without_a_run_is_free(on_open: OnOpen, on_closed: OnClosed) -> None:
    assert ask(Standing(), on_open=on_open, on_closed=on_closed) == Admit(1)


@pytest.mark.parametrize("on_closed", OnClosed)
def test_the_open_run_decides_whatever_has_ended(on_closed: OnClosed) -> None:
    standing = Standing(COMPLETED, OPEN)
    assert ask(standing, on_open=OnOpen.FAIL, on_closed=on_closed) == ("id_in_use", "open")
    assert ask(standing, on_open=OnOpen.USE_EXISTING, on_closed=on_closed) == Use(OPEN)
    assert ask(standing, on_open=OnOpen.CANCEL_EXISTING, on_closed=on_closed) == Replace(OPEN)


@pytest.mark.parametrize(
    ("on_closed", "may_follow"),
    [(OnClosed.ALLOW, {FAILED, CANCELLED, COMPLETED}), (OnClosed.ALLOW_IF_FAILED, {FAILED, CANCELLED})],
)
@pytest.mark.parametrize("newest", [FAILED, CANCELLED, COMPLETED])
def test_t_unq_2_after_an_end_on_closed_decides_and_runs_are_counted(
    newest: Run, on_closed: OnClosed, may_follow: set[Run]
) -> None:
    wanted = Admit(newest.number + 1) if newest in may_follow else ("id_used", newest.ulid)
    assert ask(Standing(newest), on_closed=on_closed) == wanted
    assert ask(Standing(newest), on_closed=OnClosed.REFUSE) == ("id_used", newest.ulid)


def test_the_run_that_a_start_has_cancelled_doesn_t_refuse_it() -> None:
    said = {"on_open": OnOpen.CANCEL_EXISTING, "on_closed": OnClosed.REFUSE}
    assert ask(Standing(CANCELLED), replaces="cancelled", **said) == Admit(6)
    assert ask(Standing(COMPLETED), replaces="cancelled", **said) == ("id_used", "completed")
