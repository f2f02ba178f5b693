"""The child's end of a tether: runs a module that ends when the parent does, however that one ended.

`python -m korak.dev.tether PARENT MODULE [ARGUMENT ...]`, with a pipe from the parent as its input.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
import threading
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str]) -> None:
    """Hold on to the parent and run the module as if Python had been given it."""
    parent, module, *rest = arguments
    hold(int(parent))
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def hold(parent: int) -> None:
    """From now on this process is killed as soon as the parent is gone.

    Linux does it by itself; everywhere else, and where the parent's thread rather than the parent has ended, the pipe
    on the standard input tells: its end is reached when nobody can write to it any more.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        end()
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=watch, args=(pipe,), name="korak-tether", daemon=True).start()


def watch(pipe: int) -> None:
    """Wait for the end of the pipe."""
    while os.read(pipe, 1024):
        pass
    end()


def end() -> None:
    """End at once: nobody is there to stop for, and what was running is taken over."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
