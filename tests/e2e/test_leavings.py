"""korak tail, chunks and artifacts against a running Korak, beside a step that streams until it is told to end."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from korak import graph, ref
from tests.e2e.test_cli import Terminal
from tests.support import devs
from tests.support.clones import Clones
from tests.support.devs import start_dev

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(120)]

STEPS = """
from collections.abc import AsyncIterator
from pathlib import Path

from korak import StepContext, step
from korak.loop import wait


@step("desk.write")
async def write(ctx: StepContext, stop: str) -> AsyncIterator[str]:
    \"\"\"Write until somebody says stop\"\"\"
    ctx.artifact("report", "Once upon a time.\\n")
    ctx.artifact("figures", {"n": [1, 2]}, metadata={"unit": "m"})
    ctx.artifact("picture", b"\\x89PNG")
    yield "Once "
    yield "upon "
    await ctx.heartbeat({"words": 2})
    while not Path(stop).exists():
        await wait(0.05)
    yield "a time."
"""


@pytest.fixture
def korak(tmp_path: Path, clones: Clones) -> Iterator[Terminal]:
    """A terminal in the directory in which `korak dev` runs."""
    (tmp_path / "desk.py").write_text(STEPS)
    built = graph("novel").trigger("manual", inputs={"stop": {"type": "string", "required": True}})
    built.node("write", "desk.write", stop=ref("input.stop")).save("novel").node("done", "end")
    with (
        clones.lend() as url,
        start_dev(tmp_path, "--steps", "desk", KORAK_DATABASE__URL=url) as dev,
    ):
        terminal = Terminal(tmp_path, dev)
        terminal("publish", terminal.write("novel.json", built.edge("start", "write").edge("write", "done")))
        yield terminal


def test_a_novel_is_followed_while_it_is_written(korak: Terminal) -> None:
    stop = korak.directory / "stop"
    answer = korak("start", "novel", "--input", f'{{"stop": "{stop}"}}', "--json").json
    instance = answer["instance"]["id"]
    command = [devs.find_korak(), "tail", instance]
    with subprocess.Popen(
        command, cwd=korak.directory, env=devs.get_environ(), stdout=subprocess.PIPE, text=True
    ) as tail:
        assert tail.stdout is not None
        seen = ""
        while not seen.endswith("write: Once upon "):
            letter = tail.stdout.read(1)
            assert letter, seen
            seen += letter
        assert "InstanceStarted" in seen
        assert "write #1  2 chunks\nOnce upon " in korak("chunks", instance).out
        assert [each["content"] for each in korak("chunks", instance, "--json").json["items"]] == ["Once ", "upon "]
        assert korak("chunks", instance, "--step", "other").out == "Nothing is being streamed.\n"
        assert korak("artifacts", instance).out == "It keeps no artifacts.\n"
        stop.touch()
        rest = tail.stdout.read()
        assert tail.wait(30) == 0
    assert rest.splitlines()[-1] == "completed"
    assert "StepCompleted" in rest

    told = [each for each in korak("tail", instance, "--json").out.splitlines() if '"end"' in each]
    assert told == ['{"event":"end","status":"completed"}']
    listed = korak("artifacts", instance, "--json").json["items"]
    assert [(each["key"], each["kind"], each["node"]) for each in listed] == [
        ("figures", "json", "write"),
        ("picture", "bytes", "write"),
        ("report", "text", "write"),
    ]
    assert "write #1" in korak("artifacts", instance).out
    assert korak("artifacts", instance, "report").out == "Once upon a time.\n"
    assert '"n": [' in korak("artifacts", instance, "figures").out
    assert korak("artifacts", instance, "figures", "--json").json["metadata"] == {"unit": "m"}
    korak("artifacts", instance, "picture", "--output", "picture.png")
    assert (korak.directory / "picture.png").read_bytes() == b"\x89PNG"
    assert "(not_found, 404)" in korak("artifacts", instance, "nothing", code=1).err
    assert "(instance_not_found, 404)" in korak("tail", "01ARZ3NDEKTSV4RRFFQ69G5FAV", code=1).err
    assert "artifacts figures, picture, report" in korak("show", instance).out
