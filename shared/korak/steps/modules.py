"""The modules of users: each imported by its name, and what is wrong in one told in a line that says where."""

from __future__ import annotations

import inspect
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from korak.errors import BrokenModule, KorakError, MissingModule, RegistrationError

OURS: Final = Path(__file__).parents[1]
LIBRARIES: Final = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def find(name: str, what: str) -> ModuleType:
    """The module of that name, imported. `what` is to be loaded from it. Raises MissingModule, BrokenModule."""
    try:
        with blaming(name):
            return import_module(name)
    except BrokenModule as broken:
        lacking = broken.__cause__
        if isinstance(lacking, ModuleNotFoundError) and _is_part(lacking.name, name):
            raise MissingModule(name=name, what=what) from lacking
        raise


@contextmanager
def blaming(module: str) -> Iterator[None]:
    """Raise BrokenModule for what the module's code raises: with its file and line, the reason and its code."""
    try:
        yield
    except BrokenModule:
        raise
    except Exception as error:
        raise _blame(module, error, _find_line(error)) from error


@contextmanager
def blaming_definition(module: str, made: Any) -> Iterator[None]:
    """Raise BrokenModule for what can't be registered: with the file and the line where it is defined."""
    try:
        yield
    except RegistrationError as error:
        raise _blame(module, error, _find_definition(made)) from error


def _is_part(lacking: str | None, name: str) -> bool:
    return lacking is not None and (name == lacking or name.startswith(f"{lacking}."))


def _blame(module: str, error: Exception, where: str | None) -> BrokenModule:
    why = error.message if isinstance(error, KorakError) else f"{type(error).__name__}: {_say(error)}"
    place = module if where is None else f"{module}, {where}"
    code = error.code if isinstance(error, KorakError) else None
    return BrokenModule(code, f"{place}: {' '.join(why.split())}")


def _say(error: Exception) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)


def _find_line(error: Exception) -> str | None:
    """The innermost line that is the user's own, not Korak's or a library's; else the innermost that isn't Korak's."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return _show(error.filename, error.lineno)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_file()]
    others = [frame for frame in frames if not Path(frame.filename).is_relative_to(OURS)]
    own = [frame for frame in others if not any(Path(frame.filename).is_relative_to(each) for each in LIBRARIES)]
    innermost = (own or others)[-1:]
    return _show(innermost[0].filename, innermost[0].lineno) if innermost else None


def _find_definition(made: Any) -> str | None:
    made = getattr(made, "function", made)
    source = made if isinstance(made, type) or inspect.isroutine(made) else type(made)
    try:
        file, (_, line) = inspect.getsourcefile(source), inspect.getsourcelines(source)
    except (OSError, TypeError):
        return None
    return _show(file, line) if file is not None and not Path(file).is_relative_to(OURS) else None


def _show(file: str, line: int | None) -> str:
    """The file as seen from here where it stands below, and the line."""
    path = Path(file)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{shown}:{line}"
