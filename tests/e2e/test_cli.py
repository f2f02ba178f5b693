"""The verbs of the command line against a running Korak, as a person and as a script use them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from korak import graph, ref
from korak.graphs.builder import GraphBuilder
from tests.support import devs
from tests.support.clones import Clones
from tests.support.devs import Dev, start_dev
from tests.support.waiting import eventually_blocking

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(120)]

FLAKY = """
from pathlib import Path

from korak import BlockingContext, StepFailed, step


@step("desk.sign")
def sign(ctx: BlockingContext, pen: str) -> None:
    \"\"\"Sign, where there is a pen\"\"\"
    if not Path(pen).exists():
        raise StepFailed("no_pen", "Nobody has a pen.")
"""


@dataclass(frozen=True, slots=True)
class Told:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its one line of JSON."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where commands are called."""

    directory: Path
    dev: Dev | None = None

    def __call__(self, *arguments: str, code: int = 0, environ: Mapping[str, str] | None = None) -> Told:
        """Call `korak`; it must exit with that code."""
        done = subprocess.run(
            [devs.find_korak(), *arguments],
            cwd=self.directory,
            env=devs.get_environ(**(environ or {})),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return Told(done.returncode, done.stdout, done.stderr)

    def write(self, name: str, built: GraphBuilder) -> str:
        """A file with the graph."""
        (self.directory / name).write_bytes(built.to_json())
        return name


@pytest.fixture(scope="module")
def korak(tmp_path_factory: pytest.TempPathFactory, clones: Clones) -> Iterator[Terminal]:
    """A terminal in the directory in which `korak dev` runs."""
    directory = tmp_path_factory.mktemp("desk")
    (directory / "desk.py").write_text(FLAKY)
    with (
        clones.lend() as url,
        start_dev(directory, "--steps", "desk", KORAK_DATABASE__URL=url) as dev,
    ):
        terminal = Terminal(directory, dev)
        terminal("publish", terminal.write("letter.json", get_letter()))
        yield terminal


def get_letter() -> GraphBuilder:
    """A letter is written, signed, and waits for a signal or an event."""
    built = graph("letter").trigger("manual", inputs={"pen": {"type": "string", "required": True}})
    built.node("sign", "desk.sign", pen=ref("input.pen"))
    built.node("go", "wait", signal="go", timeout="PT1H").node("stamp", "wait", event="stamp.came", timeout="PT1H")
    built.node("sent", "end", result={"status": "sent"}).node("late", "end", result={"status": "late"})
    built.edge("start", "sign").edge("sign", "go").edge("go", "stamp").edge("go", "late", "timed_out")
    return built.edge("stamp", "sent").edge("stamp", "late", "timed_out")


def start(korak: Terminal, *more: str, pen: str = "desk.py") -> str:
    answer = korak("start", "letter", "--input", json.dumps({"pen": pen}), "--json", *more).json
    return str(answer["instance"]["id"])


def await_waiting(korak: Terminal, instance: str, node: str) -> None:
    assert korak.dev is not None
    korak.dev.await_step(instance, node, "waiting")


def test_a_letter_from_start_to_end(korak: Terminal) -> None:
    instance = start(korak)
    await_waiting(korak, instance, "go")
    shown = korak("show", instance).out
    assert instance in shown
    assert "◷" in shown
    assert "for signal go, due in" in shown
    assert korak("signal", instance, "go", "--payload", '{"by": "Ana"}', "--json").json["delivered"]
    await_waiting(korak, instance, "stamp")
    assert korak("emit", "stamp.came", "--id", instance, "--json").json["matched"] >= 1
    ended = korak("show", instance, "--wait", "--json").json
    assert (ended["status"], ended["result"]) == ("completed", {"status": "sent"})
    assert [step["node"] for step in ended["steps"]] == ["sign", "go", "stamp", "sent"]
    drawn = korak("show", instance).out
    assert drawn.count("✓") == 5
    assert 'result {"status":"sent"}' in drawn


def test_a_failed_letter_is_shown_and_retried(korak: Terminal) -> None:
    pen = korak.directory / "pen"
    told = korak("start", "letter", "--input", json.dumps({"pen": str(pen)}), "--wait", code=1)
    assert "✗ failed" in told.out
    assert "failed at sign: Nobody has a pen. (no_pen)" in told.out
    (failed,) = korak("list", "--status", "failed", "--json").json["items"]
    pen.touch()
    korak("retry", failed["id"])
    await_waiting(korak, failed["id"], "go")
    attempts = [step for step in korak("show", failed["id"], "--json").json["steps"] if step["node"] == "sign"]
    assert [step["status"] for step in attempts] == ["failed", "completed"]
    assert korak("retry", failed["id"], code=1).err.startswith("This instance can't be retried")


def test_a_letter_goes_back_is_forked_and_travels_as_a_document(korak: Terminal) -> None:
    instance = start(korak)
    await_waiting(korak, instance, "go")
    assert korak("rewind", instance, "sign", "--json").json["nodes"] == ["go"]
    drawn = korak("show", instance).out
    assert "go #2" in drawn
    refused = korak("rewind", instance, "stamp", code=1)
    assert "step_not_completed" in refused.err
    fork = korak("fork", instance, "--json").json
    assert (fork["labels"], fork["nodes"]) == ([f"forked_from:{instance}"], ["go"])
    assert "bytes are in letter.run.jsonl" in korak("export", instance, "-o", "letter.run.jsonl").err
    made = korak("import", "letter.run.jsonl", "--json").json
    assert (made["status"], made["labels"]) == ("waiting", [f"imported_from:{instance}"])
    head, *_ = korak("export", made["id"]).out.splitlines()
    assert json.loads(head)["run"]["instance"]["id"] == made["id"]
    for each in (fork["id"], made["id"]):
        korak("signal", each, "go")
        await_waiting(korak, each, "stamp")
    for each in (instance, fork["id"], made["id"]):
        korak("cancel", each)
    assert "can't be read" in korak("import", "nowhere.jsonl", code=2).err


def test_an_input_from_a_file_and_a_key_that_repeats(korak: Terminal) -> None:
    (korak.directory / "input.json").write_text('{"pen": "desk.py"}')
    first = korak("start", "letter", "--input", "@input.json", "--id-key", "k1", "--json").json
    again = korak("start", "letter", "--input", "@input.json", "--id-key", "k1")
    assert first["created"] is True
    assert first["instance"]["id"] in again.out
    assert "before" in again.err


def test_an_id_of_one_s_own_stands_for_its_newest_run(korak: Terminal) -> None:
    unique = ("--id", "A-17", "--on-open", "use_existing")
    first = start(korak, *unique)
    again = korak("start", "letter", "--input", '{"pen": "desk.py"}', *unique)
    assert first in again.out
    assert "This id has started it before" in again.err
    assert "A-17" in korak("show", "letter~A-17").out
    assert "(id_in_use, 409)" in korak("start", "letter", "--input", '{"pen": "x"}', "--id", "A-17", code=1).err
    korak("cancel", "letter~A-17")
    refused = korak("start", "letter", "--input", '{"pen": "x"}', "--id", "A-17", "--on-closed", "refuse", code=1)
    assert "(id_used, 409)" in refused.err
    sent = korak("signal", "letter~A-17", "go", "--start", '{"pen": "desk.py"}', "--json").json
    assert sent["created"] is True
    assert "A-17 run 2" in korak("show", "letter~A-17").out
    assert {item["id"] for item in korak("list", "--id", "A-17", "--json").json["items"]} == {first, sent["instance"]}


def test_a_debounced_start_says_when_it_is_due(korak: Terminal) -> None:
    given = ("start", "letter", "--input", '{"pen": "desk.py"}', "--id", "late", "--debounce")
    assert "It starts at" in korak(*given, "key=K,wait=30,max-wait=300").out
    assert "due_at" in korak(*given, "key=K,wait=0,max-wait=PT5M", "--json").json
    assert "/debounce/max_wait" in korak(*given, "key=K,wait=30,max-wait=3", code=1).err
    assert "key=KEY" in korak(*given, "K", code=2).err

    def list_begun() -> Any:
        return korak("list", "--id", "late", "--json").json["items"]

    assert len(eventually_blocking(list_begun, 10)) == 1


def test_cancel_says_why(korak: Terminal) -> None:
    instance = start(korak)
    await_waiting(korak, instance, "go")
    drawn = korak("cancel", instance, "--reason", "the pen leaks").out
    assert "⊘ cancelled" in drawn
    assert "cancelled: the pen leaks" in drawn
    assert "(instance_not_cancellable, 409)" in korak("cancel", instance, code=1).err
    problem = json.loads(korak("signal", instance, "go", "--json", code=1).err)
    assert (problem["status"], problem["code"]) == (409, "instance_ended")


def test_what_is_held_doesn_t_begin_until_it_is_released(korak: Terminal) -> None:
    assert korak("hold", "step", "desk.sign", "--reason", "the ink dries").out == (
        "step desk.sign is held: the ink dries\n"
    )
    try:
        instance = start(korak)
        assert eventually_blocking(lambda: "until step type desk.sign is released" in korak("show", instance).out, 30)
    finally:
        assert korak("release", "step", "desk.sign").out == "step desk.sign is released\n"
    await_waiting(korak, instance, "go")
    korak("cancel", instance)
    assert "There is no hold desk.sign here." in korak("release", "step", "desk.sign", code=1).err


def test_what_waits_in_a_queue_and_who_serves_it(korak: Terminal) -> None:
    held = korak("hold", "queue", "default", "--until", "2100-01-01T00:00:00Z", "--json").json
    assert (held["kind"], held["name"], held["until"][:10]) == ("queue", "default", "2100-01-01")
    try:
        assert "1 consumers (on hold until 2100-01-01" in korak("queues").out
    finally:
        korak("release", "queue", "default")
    [queue] = korak("queues", "--json").json["items"]
    assert (queue["name"], queue["consumers"], queue["hold"]) == ("default", 1, None)


def test_a_definition_is_held_by_its_key(korak: Terminal) -> None:
    assert korak("hold", "definition", "letter").out == "definition letter is held\n"
    assert korak("release", "definition", "letter", "--json").json["released_at"] is not None


def test_what_nobody_knows_can_t_be_held(korak: Terminal) -> None:
    assert "There is no step type desk.sing here. (not_found, 404)" in korak("hold", "step", "desk.sing", code=1).err
    assert "There is no queue erp here." in korak("hold", "queue", "erp", code=1).err
    assert "There is no definition lettre here." in korak("hold", "definition", "lettre", code=1).err
    assert "(invalid_request, 422)" in korak("hold", "queue", "default", "--until", "soon", code=1).err
    assert korak("hold", "drawer", "top", code=2).err


def test_pause_and_resume(korak: Terminal) -> None:
    instance = start(korak)
    await_waiting(korak, instance, "go")
    assert "‖ paused" in korak("pause", instance).out
    assert korak("list", "--status", "paused", "--json").json["items"][0]["id"] == instance
    assert "◷ waiting" in korak("resume", instance).out
    assert korak("resume", instance, "--json", code=1).err


def test_list_filters_and_draws(korak: Terminal) -> None:
    instance = start(korak)
    assert instance in korak("list", "--definition", "letter").out
    assert "There are no instances." in korak("list", "--definition", "none.such").out
    assert korak("list", "--created-before", "2001-01-01T00:00:00Z", "--json").json["items"] == []
    assert len(korak("list", "--limit", "1", "--json").json["items"]) == 1
    refused = korak("list", "--status", "odd", code=1).err
    assert "/status: status is wrong" in refused
    assert "invalid_parameter" in refused


def test_publish_leaves_alone_what_is_published_and_says_what_is_wrong(korak: Terminal) -> None:
    file = korak.write("memo.json", graph("memo").trigger().node("done", "end").edge("start", "done"))
    assert [(each["result"], each["version"]) for each in korak("publish", file, "--json").json] == [("published", 1)]
    assert [(each["result"], each["version"]) for each in korak("publish", file, "--json").json] == [("unchanged", 1)]
    korak.write("memo.json", graph("memo").trigger().node("end", "end").edge("start", "end"))
    assert [(each["result"], each["version"]) for each in korak("publish", file, "--json").json] == [("published", 2)]
    bad = graph("bad").trigger().node("a", "no.such").node("b", "condition", {"if": ref("state.x")})
    told = korak("publish", korak.write("bad.json", bad.edge("start", "a")), code=1).out
    assert "✗ bad" in told
    assert "/nodes/1/type in node a: No step type no.such is known here. (unknown_type)" in told
    [refused] = korak("publish", "bad.json", "--json", code=1).json
    assert ("/nodes/1/type", "unknown_type") in [(each["pointer"], each["code"]) for each in refused["problems"]]
    (korak.directory / "odd.json").write_text("{")
    assert "This isn't JSON" in korak("publish", "odd.json", code=1).out


def test_publish_tells_what_is_odd(korak: Terminal) -> None:
    file = korak.write("odd-retry.json", graph("clamped").trigger().node("a", "end").retry(20).edge("start", "a"))
    told = korak("publish", file).out
    assert "clamped version 1 published" in told
    assert "max_attempts is 20; 10 is used. (retry_clamped)" in told
    [again] = korak("publish", file, "--json").json
    assert [(each["code"], each["pointer"]) for each in again["warnings"]] == [
        ("retry_clamped", "/nodes/1/retry/max_attempts")
    ]


def test_a_start_answers_alike_with_and_without_a_wait(korak: Terminal) -> None:
    korak("publish", korak.write("now.json", graph("now").trigger().node("a", "end").edge("start", "a")))
    for flags in ((), ("--wait",)):
        told = korak("start", "now", *flags, "--json").json
        assert (told["created"], told["instance"]["status"]) == (True, "completed")


def test_problems_have_code_detail_and_pointers(korak: Terminal) -> None:
    told = korak("start", "letter", "--input", '{"pen": 7, "ink": 1}', code=1).err.splitlines()
    assert "422)" in told[0]
    assert any(line.startswith("  /input/pen: ") for line in told), told
    problem = json.loads(korak("start", "letter", "--json", code=1).err)
    assert problem["status"] == 422
    assert problem["errors"]
    assert "(definition_not_found, 404)" in korak("start", "nobody", code=1).err
    assert "(instance_not_found, 404)" in korak("show", "01ARZ3NDEKTSV4RRFFQ69G5FAV", code=1).err
    assert "isn't JSON" in korak("start", "letter", "--input", "{", code=2).err


def test_tokens_open_what_their_roles_allow(korak: Terminal) -> None:
    assert korak.dev is not None
    made = korak("token", "create", "--role", "viewer", "--name", "a screen", "--expires", "P1D", "--json").json
    client = {"KORAK_CLIENT__URL": korak.dev.url, "KORAK_CLIENT__TOKEN": made["token"]}
    korak("list", environ=client)
    assert "(forbidden, 403)" in korak("start", "letter", code=1, environ=client).err
    assert made["id"] in korak("token", "list").out
    korak("token", "revoke", made["id"])
    assert "no token" in korak("token", "revoke", made["id"], code=1).err
    korak("token", "create", "--role", "boss", code=1)
    secret = korak("token", "create", "--role", "starter", "--owner", "team:42").out.strip()
    assert secret.startswith("korak_")
    theirs = korak("list", "--json", environ={**client, "KORAK_CLIENT__TOKEN": secret}).json
    assert theirs["items"] == []


def test_an_owner_is_given_its_share(korak: Terminal) -> None:
    assert korak("weight", "team:42").out == "team:42 has 1 in each turn\n"
    assert korak("weight", "team:42", "3").out == "team:42 has 3 in each turn\n"
    assert korak("weight", "team:42", "--json").json == {"owner": "team:42", "weight": 3}
    assert "/weight: " in korak("weight", "team:42", "0", code=1).err


def test_doctor_and_wake_on_the_database_that_dev_left(korak: Terminal) -> None:
    start(korak)
    told = {each["name"]: each["verdict"] for each in korak("doctor", "--json").json}
    assert told == {"database": "well", "migrations": "well", "broker": "well", "effects": "noted", "stuck": "well"}
    assert "✓ database" in korak("doctor").out
    assert korak("wake", "--json").json["errors"] == 0


def test_an_empty_database_is_seen_and_migrated(tmp_path: Path, empty_database_url: str) -> None:
    korak = Terminal(tmp_path)
    where = {"KORAK_DATABASE__URL": empty_database_url}
    assert "run korak migrate" in korak("doctor", code=1, environ=where).out
    assert "from nothing to revision" in korak("migrate", environ=where).out
    again = korak("migrate", "--json", environ=where).json
    assert again["before"] == again["after"]
    korak("doctor", environ=where)


def test_without_anything_it_says_what_to_do(tmp_path: Path) -> None:
    korak = Terminal(tmp_path)
    assert "korak dev" in korak("list", code=2).err
    assert "KORAK_DATABASE__URL" in korak("doctor", code=2).err
    nowhere = {"KORAK_CLIENT__URL": "http://127.0.0.1:9", "KORAK_CLIENT__TOKEN": "x"}
    assert "Nothing answers at http://127.0.0.1:9" in korak("list", code=1, environ=nowhere).err
    gone = {"KORAK_DATABASE__URL": "postgresql://me:hush@127.0.0.1:9/x"}
    told = korak("doctor", code=1, environ=gone).out
    assert "✗ server" in told or "✗ database" in told
    assert "hush" not in told


@pytest.mark.parametrize("service", ["api", "engine"])
def test_a_module_that_breaks_ends_a_service_with_one_line(tmp_path: Path, database_url: str, service: str) -> None:
    (tmp_path / "slip.py").write_text("from korak import chain\n\nchain('x').thn(print)\n")
    where = {"KORAK_DATABASE__URL": database_url, "KORAK_CHAINS": "slip"}
    told = Terminal(tmp_path)(service, code=1, environ=where)
    assert told.err == "slip, slip.py:3: AttributeError: 'Chain' object has no attribute 'thn' (module_broken)\n"
