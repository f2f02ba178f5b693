"""How often a condition is looked at: as its wait says, else as the setting does, never below a minute (WT-13)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from korak.config import load_settings
from korak.core.snapshot import Policy
from korak.model import Json, JsonObject
from korak.policy import get_policy
from tests.support.plans import line
from tests.support.runs import Run

NEVER: JsonObject = {"cel": "1 > 2"}


@pytest.mark.parametrize(
    ("written", "setting", "seconds"), [(None, 900, 900), (None, 120, 120), (None, 5, 60), ("PT5M", 120, 300)]
)
def test_wt_13_a_condition_is_looked_at_as_often_as_is_said(written: Json, setting: float, seconds: float) -> None:
    config: JsonObject = {"condition": NEVER} if written is None else {"condition": NEVER, "poll": written}
    run = Run(line(("w", "wait", config)), policy=Policy(poll=setting))
    for _ in range(3):
        [wait] = run.waits
        assert wait.due_at == run.now + timedelta(seconds=seconds)
        run.pass_time(seconds)
        run.claim()


def test_the_setting_reaches_decisions() -> None:
    assert get_policy(load_settings({"KORAK_WAKE__POLL": "PT2M"})).poll == 120
    assert get_policy(load_settings({})) == Policy()
