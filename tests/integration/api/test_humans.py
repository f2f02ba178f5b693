"""What an instance tells of the waits that ask something of a person."""

from __future__ import annotations

from typing import Any

import pytest

from korak import chain
from tests.support.apis import Api, node
from tests.support.apis import chain as line

REVIEW = (
    chain("review").wait_for_approval().wait_for_input("numbers").wait_for_decision("yes", "no").wait_for_signal("go")
)


def tell(instance: Any) -> list[Any]:
    """The people's part of what is waited for."""
    return [(each["kind"], each["node"], each["human"], each["names"]) for each in instance["waiting_for"]]


async def test_each_kind_of_question_is_told_with_its_signals(api: Api) -> None:
    """11.9, ours: what may be answered is read from the run, whatever its signals are called"""
    await api.publish(REVIEW.document())
    started = await api.start("review")
    one = started["id"]
    assert tell(started) == [("signal", "wait_for_approval", "approval", ["approval"])]
    assert tell(await api.show(one)) == tell(started)
    for name, told in [
        ("approval", ("signal", "wait_for_input", "input", ["numbers"])),
        ("numbers", ("signal", "wait_for_decision", "decision", ["yes", "no"])),
        ("no", ("signal", "wait_for_go", None, ["go"])),
    ]:
        sent = await api.post(f"/v1/instances/{one}/signal", {"name": name})
        assert sent.json()["delivered"], sent.text
        assert tell(await api.show(one)) == [told]
        [listed] = (await api.get("/v1/instances")).json()["items"]
        assert tell(listed) == [told]
    paused = (await api.post(f"/v1/instances/{one}/pause")).json()
    assert tell(paused) == [("signal", "wait_for_go", None, ["go"])]


@pytest.mark.parametrize(
    "config",
    [
        {"signals": ["a", "b"], "mode": "any", "human": "approval"},
        {"signals": ["a", "b"], "mode": "all", "human": "decision"},
        {"signals": ["a", "b", "c"], "mode": "any", "human": "decision"},
        {"signal": "a", "human": "decision"},
        {"event": "a", "human": "input"},
        {"signal": "a", "human": "boss"},
    ],
)
async def test_a_question_fits_what_is_waited_for(shared_api: Api, config: Any) -> None:
    response = await shared_api.post("/v1/definitions/validate", {"graph": line("ask", node("ask", "wait", **config))})

    assert response.status_code == 422, response.text
    assert {each["pointer"] for each in response.json()["errors"]} == {"/nodes/1/config/human"}
