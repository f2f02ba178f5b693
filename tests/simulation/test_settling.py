"""What counts as come to rest: who waits for a client, and who waits for such a run."""

from __future__ import annotations

from korak.core.facts import RetryAsked
from korak.model import InstanceStatus, JsonObject
from tests.simulation import settling
from tests.support.bodies import node
from tests.support.kin import Kin
from tests.unit.core.test_nesting import document

ONCE: JsonObject = {"max_attempts": 1}


def test_who_was_told_of_a_run_s_end_waits_on_once_that_goes_on_again() -> None:
    waiter = document("waiter", node("wait", "wait_workflows", ids={"ref": "input.ids"}, mode="quorum", quorum=1))
    kin = Kin(waiter, document("run", node("bad", "test.flaky", times=1, retry=ONCE), node("ask", "wait", signal="go")))
    ids = [kin.start("run"), kin.start("run")]
    kin.drain()
    assert [kin.instance(each).status for each in ids] == [InstanceStatus.FAILED] * 2
    kin.tell(ids[1], RetryAsked())
    kin.drain()
    run = kin.start("waiter", {"ids": list(ids)})
    kin.drain()
    assert settling.is_settled(kin.memory)
    kin.tell(ids[0], RetryAsked())
    kin.drain()
    assert not kin.instance(run).is_ended
    assert settling.is_settled(kin.memory)
