"""Makes the blocking client from the async one: `python -m tests.support.twins` writes it anew."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from tests.support.servers import ROOT

FOLDER = ROOT / "shared/korak/client"
MODULES = ("calling", "commanding", "defining", "linking", "reading")

HEAD = '''"""Made from the async module of this name, never edited: `python -m tests.support.twins`."""'''
WORDS = {
    r"\basync (def|with|for)\b": r"\1",
    r"\bawait ": "",
    r"\bAsync(Korak|Link|Reading|Commanding|Defining)\b": r"\1",
    r"\bkorak\.client\.asynchronous\b": "korak.client.blocking",
    r"\ba(read|iter_lines|iter_bytes)\b": r"\1",
    r"\bAsync(Client|BaseTransport|Iterator|Pieces)\b": r"\1",
    r"\b__a(enter|exit)__": r"__\1__",
    r"\baclose\b": "close",
    r"\b(rest|gather)_async\b": r"\1",
    r"\bAn async context manager\b": "A context manager",
}


def make(source: str) -> str:
    """The blocking twin of a module, not yet formatted."""
    made = source.replace(source[: source.index("\n")], HEAD, 1)
    for word, other in WORDS.items():
        made = re.sub(word, other, made)
    return made


def is_same(one: str, other: str) -> bool:
    """Whether two modules are the same but for their lines."""
    return ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


def list_pairs() -> list[tuple[Path, Path]]:
    """Each source with its twin."""
    return [(FOLDER / f"asynchronous/{name}.py", FOLDER / f"blocking/{name}.py") for name in MODULES]


def write() -> None:
    """Write the twins, formatted."""
    ruff = str(Path(sys.executable).with_name("ruff"))
    for source, twin in list_pairs():
        twin.write_text(make(source.read_text()))
        for job in (["check", "--quiet", "--fix", "--select=I"], ["format", "--quiet"]):
            subprocess.run([ruff, *job, str(twin)], check=True, cwd=ROOT)


if __name__ == "__main__":
    write()
