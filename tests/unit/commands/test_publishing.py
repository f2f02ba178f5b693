"""Which files are graphs, and what a published one may be started with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import orjson
import pytest
import typer

from korak.commands.calling import Caller
from korak.commands.publishing import Result, list_graphs, publish_file
from korak.commands.reading import read_json
from korak.commands.welcoming import get_command, sample_input
from tests.support.servers import ROOT

GRAPH = b'{"schema": "korak.graph/v1", "key": "x"}'


def test_graphs_are_found_by_what_they_say_they_are(tmp_path: Path) -> None:
    for name, content in {
        "a.json": GRAPH,
        "deep/b.json": GRAPH,
        "broken.json": GRAPH[:-1],
        "package.json": b'{"name": "x"}',
        "comments.json": b"// not JSON",
        ".hidden/c.json": GRAPH,
        "node_modules/d.json": GRAPH,
        "e.txt": GRAPH,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert [str(file.relative_to(tmp_path)) for file in list_graphs(tmp_path)] == [
        "a.json",
        "broken.json",
        "deep/b.json",
    ]
    assert list(list_graphs(tmp_path / "package.json")) == [tmp_path / "package.json"]


@pytest.mark.parametrize(
    ("content", "code"), [(None, "unreadable"), (GRAPH[:-1], "invalid_json"), (b"[]", "invalid_document")]
)
def test_a_file_that_is_no_graph_is_refused_before_anybody_is_called(
    tmp_path: Path, content: bytes | None, code: str
) -> None:
    file = tmp_path / "x.json"
    if content is not None:
        file.write_bytes(content)
    refused = publish_file(cast("Caller", None), file)
    assert (refused.result, refused.reason and [problem["code"] for problem in refused.reason.problems]) == (
        Result.REFUSED,
        [code],
    )


def test_the_command_is_suggested_as_this_shell_would_find_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`make run` calls it in `.venv/bin`, where the next terminal has no `korak` on its path."""
    monkeypatch.setattr("sys.argv", [".venv/bin/korak", "dev"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert get_command() == ".venv/bin/korak"
    (tmp_path / "korak").touch(mode=0o755)
    assert get_command() == "korak"


def test_the_shop_can_be_started_as_it_is_suggested() -> None:
    assert sample_input(ROOT / "examples/shop/order.json") == {"order_id": "A-100", "sku": "mug"}


@pytest.mark.parametrize(
    ("inputs", "sample"),
    [
        (None, {}),
        ({"n": {"type": "integer", "required": True}, "m": {"type": "integer"}}, {"n": 1}),
        ({"kind": {"enum": ["a", "b"], "required": True}, "what": {"required": True}}, {"kind": "a", "what": "..."}),
        ({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}, {"ok": True}),
    ],
)
def test_a_sample_is_made_of_what_is_required(tmp_path: Path, inputs: Any, sample: dict[str, Any]) -> None:
    config = {"on": "manual"} if inputs is None else {"on": "manual", "inputs": inputs}
    file = tmp_path / "x.json"
    file.write_bytes(orjson.dumps({"nodes": [{"id": "start", "type": "trigger", "config": config}]}))
    assert sample_input(file) == sample


def test_json_stands_on_the_line_or_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    assert read_json('{"a": 1}', option="--input") == read_json(f"@{tmp_path / 'x.json'}", option="--input") == {"a": 1}
    for wrong in ("{", "@nowhere.json"):
        with pytest.raises(typer.BadParameter):
            read_json(wrong, option="--input")
