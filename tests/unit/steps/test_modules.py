"""Modules of users that can't be loaded: one line with the module, the file and line, the reason and its code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from korak.cli import main
from korak.errors import BrokenModule
from korak.steps import modules
from korak.steps.registry import Registry

HEAD = "from korak import StepType, chain, step\n"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where modules are found and shown from."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("code", "why", "told"),
    [
        ("x = chain('x')\nx.thn(1)\n", "module_broken", "3: AttributeError: 'Chain' object has no attribute 'thn'"),
        ("x = (\n", "module_broken", "2: SyntaxError: '(' was never closed"),
        ("import json\njson.loads('{')\n", "module_broken", "3: JSONDecodeError: Expecting property name"),
        ("raise ValueError('one\\ntwo')\n", "module_broken", "2: ValueError: one two"),
        ("chain('x').bind(a=1)\n", "invalid_document", "2: bind() means the handler"),
        ("@step('one')\ndef one(ctx): ...\n", "invalid_step_type", "2: one: the key 'one' needs a dot"),
        ("@step('a.one')\ndef one(): ...\n", "invalid_step_type", "2: one takes no context"),
        ("class Two(StepType):\n    key = 'a.b'\n", "invalid_step_type", "2: Two has no handle()"),
    ],
)
def test_a_module_that_breaks_is_told_in_a_line(directory: Path, code: str, why: str, told: str) -> None:
    name = f"broken_{len(code)}"
    (directory / f"{name}.py").write_text(HEAD + code)
    with pytest.raises(BrokenModule) as caught:
        Registry().load([name])
    assert caught.value.code == why
    assert caught.value.message.startswith(f"{name}, {name}.py:{told}")
    assert "\n" not in caught.value.message


def test_the_line_is_the_users_own_wherever_the_error_comes_from(directory: Path) -> None:
    (directory / "beneath.py").write_text("import json\n\n\ndef read(text):\n    return json.loads(text)\n")
    (directory / "above.py").write_text("import beneath\n\nbeneath.read('{')\n")
    with pytest.raises(BrokenModule, match=r"^above, beneath\.py:5: JSONDecodeError"):
        modules.find("above", "chains")


@pytest.mark.parametrize("flag", ["--steps", "--chains"])
def test_the_command_line_tells_it_and_exits_with_1(directory: Path, flag: str) -> None:
    (directory / "slip.py").write_text(HEAD + "chain('x').repeat_until('nowhere', 'done')\n")
    done = subprocess.run(
        [sys.executable, "-m", "korak", "dev", flag, "slip", "--data", "d"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "slip, slip.py:2: target_step names 'nowhere': no step of that name was added before. (invalid_document)"
    ]


def test_a_module_that_is_not_there_is_wrong_usage(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["sync", "--chains", "nowhere.at_all"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == "There is no module nowhere.at_all to load chains from.\n"
