"""The command line: its help, its one flag for all commands, its exit codes, and what signals do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from korak import cli, commands
from korak.commands import panels, running
from korak.commands.screen import Screen
from korak.errors import NotFound, SettingsError, refuse_at

PROGRAM = """
import asyncio, os, sys
from korak import logs
from korak.commands.running import run
from korak.config import Logs

async def main(stop):
    sys.stdout.write("up\\n")
    sys.stdout.flush()
    await stop.wait()
    {after}

logs.configure(Logs())
sys.exit(run(main))
"""


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        cli.main(arguments)
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 1
    else:
        code = 0
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_help_lists_the_services(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--help")
    assert code == 0
    for name in ("api", "engine", "waker", "escalator", "--json"):
        assert name in out


def test_every_command_is_registered_and_has_its_place_in_the_help() -> None:
    folder = Path(commands.__file__).parent
    assert {path.stem for path in folder.glob("*.py") if "\ndef register(" in path.read_text()} == set(commands.MODULES)
    app = cli.build()
    names = {panels.get_name(info) for info in [*app.registered_commands, *app.registered_groups]}
    assert names == set(panels.PLACES)


def test_the_help_shows_commands_in_order_and_flags_without_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--help")
    shown = [line.split()[1] for line in out.splitlines() if line.startswith("│ ") and line[2:3].isalpha()]
    assert shown == [name for names in panels.PANELS.values() for name in names]
    for command in ("list", "start", "show", "token"):
        assert "<bool>" not in call(capsys, command, "--help")[1]


def test_a_command_line_is_read_without_what_only_some_commands_need() -> None:
    code = (
        "import sys; from korak.cli import build; build(); sys.exit(bool({'alembic', 'asyncpg'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, "--version")
    assert code == 0
    assert out.startswith("korak 0.")


@pytest.mark.parametrize("name", ["api", "engine", "waker", "escalator"])
def test_every_service_takes_steps(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = call(capsys, name, "--help")
    assert code == 0
    assert "--steps" in out


def test_an_unknown_command_exits_with_two(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "frobnicate")
    assert code == 2
    assert "frobnicate" in err


def test_a_wrong_setting_is_one_line_and_exits_with_two(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KORAK_ENGINE__LEESE", "60")
    code, out, err = call(capsys, "engine")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "KORAK_ENGINE__LEASE" in err


def test_wrong_steps_are_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capsys, "engine", "--steps", "shop steps")
    assert code == 2
    assert "KORAK_STEPS" in err


def test_steps_of_the_command_line_go_before_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KORAK_STEPS", "from.environment")
    assert running.read_settings().steps == ("from.environment",)
    assert running.read_settings("from.flag").steps == ("from.flag",)


def test_modules_of_the_directory_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    running.read_settings()
    running.read_settings()
    assert sys.path.count(str(tmp_path)) == 1


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (["list", "--json"], ["--json", "list"]),
        (["--json", "list"], ["--json", "list"]),
        (["list", "--json", "--status", "failed", "--json"], ["--json", "list", "--status", "failed"]),
        (["start", "--", "--json"], ["start", "--", "--json"]),
        ([], []),
    ],
    ids=["after", "before", "twice", "behind a double dash", "nothing"],
)
def test_json_may_stand_anywhere(given_: list[str], expected: list[str]) -> None:
    assert cli.hoist(given_, "--json") == expected


@given(st.lists(st.sampled_from(["list", "--json", "--", "x"])))
def test_hoisting_keeps_all_other_arguments_in_order(arguments: list[str]) -> None:
    hoisted = cli.hoist(arguments, "--json")
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [argument for argument in arguments[:end] if argument != "--json"] + arguments[end:]
    assert (hoisted[1:] if "--json" in arguments[:end] else hoisted) == kept


@pytest.mark.parametrize(("error", "code"), [(NotFound("definition_not_found", key="x"), 1), (SettingsError("x"), 2)])
def test_errors_are_one_line_with_their_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    app = typer.Typer()

    @app.callback(invoke_without_command=True)
    def fail() -> None:
        raise error

    monkeypatch.setattr(cli, "build", lambda: app)
    found, out, err = call(capsys)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert str(error) in err


def test_json_answers_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Screen(is_json=True).show({"url": "http://x", "nested": {"a": [1, 2]}})
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"url": "http://x", "nested": {"a": [1, 2]}}


def test_answers_for_people_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().show({"id": 7}, lambda answer: f"instance {answer['id']}")
    Screen().show({"id": 8})
    Screen().tell("on the way")
    shown = capsys.readouterr()
    assert shown.out.startswith("instance 7\n")
    assert json.loads(shown.out.removeprefix("instance 7\n")) == {"id": 8}
    assert shown.err == "on the way\n"


HOSTILE = "a\x1b[2J\x1b]0;x\x07\x9b1m\u202eb [red]c[/red] [/nope] :smile:\tč\n"


def test_no_text_of_a_run_is_obeyed_by_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither control characters nor what looks like markup: a reason `[/x]` once ended `korak hold` and `queues`."""
    Screen().show({}, lambda _: Text(HOSTILE, "bold"))
    Screen().show({}, lambda _: HOSTILE)
    Screen().write(HOSTILE)
    Screen().tell(HOSTILE)
    shown = capsys.readouterr()
    assert not set("\x1b\x07\x9b\u202e") & set(shown.out + shown.err)
    assert shown.out.count("[red]c[/red] [/nope] :smile:") == 3
    assert shown.err == "a�[2J�]0;x��1m�b [red]c[/red] [/nope] :smile:\tč\n\n"


def start(after: str = "pass") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(after=after)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_service_cleanly(number: signal.Signals) -> None:
    process = start()
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert json.loads(err.splitlines()[0])["event"] == "stopping"


def test_a_second_signal_exits_at_once() -> None:
    process = start("sys.stdout.write('draining\\n'); sys.stdout.flush(); await asyncio.Event().wait()")
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    assert process.stdout.readline() == "draining\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_crash_exits_with_one_and_is_logged() -> None:
    process = start("raise RuntimeError('database gone')")
    process.terminate()
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    crash = json.loads(err.splitlines()[-1])
    assert crash["event"] == "crashed"
    assert "database gone" in crash["exception"]


def test_the_command_is_installed() -> None:
    script = Path(sys.executable).with_name("korak")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KORAK_")}
    shown = subprocess.run([script, "--version"], check=True, capture_output=True, text=True, env=environment)
    assert shown.stdout.startswith("korak ")


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (
            ["publish", "nofile"],
            2,
            {"code": "invalid_usage", "detail": "Invalid value for 'files': path 'nofile' does"},
        ),
        (["show"], 2, {"code": "invalid_usage", "detail": "Missing argument 'INSTANCE'."}),
        (["sync"], 2, {"code": "invalid_setting", "detail": "There is no chain here"}),
        (["sync", "--chains", "no.where"], 2, {"code": "module_missing", "detail": "There is no module no.where"}),
    ],
)
def test_under_json_what_is_wrong_has_fields(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    problem: dict[str, str],
) -> None:
    monkeypatch.delenv("KORAK_CHAINS", raising=False)
    ended, out, err = call(capsys, *arguments, "--json")
    told = json.loads(err)
    assert (ended, out, err.count("\n"), told["code"], told["errors"]) == (code, "", 1, problem["code"], [])
    assert told["detail"].startswith(problem["detail"])


def test_under_json_a_problem_tells_its_issues(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**settings: object) -> None:
        raise refuse_at("/input/x", "field_not_writable", field="_x")

    monkeypatch.setattr("korak.commands.syncing.read_settings", fail)
    code, _, err = call(capsys, "sync", "--json")
    [issue] = json.loads(err)["errors"]
    assert (code, issue["code"], issue["pointer"]) == (1, "field_not_writable", "/input/x")
