"""Runs command lines of one checkout quickly: a process that has loaded everything and forks.

Run as a script. Without arguments it serves requests: one JSON object a line on the descriptor
``GOLDEN_REQUESTS`` with ``program``, ``words``, ``directory``, ``stdout`` and ``stderr``, each
answered on ``GOLDEN_ANSWERS`` with the exit code. With arguments it is that program: a name from
``[project.scripts]`` and its words. The package is found through ``PYTHONPATH``, and programs
through ``pyproject.toml`` in ``GOLDEN_SOURCE``, so that nothing depends on where modules lie.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import sys
import tomllib
import traceback
from pathlib import Path
from typing import Any

PACKAGES = ("mosesplug", "formats")
LONGEST = 1200
"""Seconds after which a command line is ended."""


def entry_point(program: str) -> tuple[str, str]:
    """Module and function of an installed program."""
    project = tomllib.loads(Path(os.environ["GOLDEN_SOURCE"], "pyproject.toml").read_text())
    module, _, function = project["project"]["scripts"][program].partition(":")
    return module, function


def run(program: str, words: list[str]) -> int:
    """Run a program as its installed script would; return the exit code."""
    return call(*entry_point(program), program, words)


def call(module: str, function: str, program: str, words: list[str]) -> int:
    """Call a function of a module as a program; return the exit code."""
    sys.argv = [program, *words]
    try:
        return getattr(importlib.import_module(module), function)() or 0
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1


def load() -> None:
    """Import every module of the packages and Numba's own parts; run nothing of theirs."""
    for package in PACKAGES:
        root = importlib.import_module(package)
        for module in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda _: None):
            if not module.name.endswith("__main__"):
                try:
                    importlib.import_module(module.name)
                except Exception as error:  # the rows that need it will fail
                    print(f"{module.name}: {error}", file=sys.stderr)
    import numba

    numba.njit(lambda: None)()


def start(request: dict[str, Any]) -> int:
    """Run a request in a child; return the exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for descriptor, path in ((1, request["stdout"]), (2, request["stderr"])):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(file, descriptor)
        os.close(file)
    os.chdir(request["directory"])
    signal.alarm(LONGEST)
    sys.exit(run(request["program"], request["words"]))


def serve() -> None:
    """Answer requests until there are no more."""
    load()
    requests = os.fdopen(int(os.environ["GOLDEN_REQUESTS"]))
    answers = os.fdopen(int(os.environ["GOLDEN_ANSWERS"]), "w", 1)
    for descriptor in (requests.fileno(), answers.fileno()):
        os.set_inheritable(descriptor, False)
    while line := requests.readline():
        print(start(json.loads(line)), file=answers)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(run(sys.argv[1], sys.argv[2:]))
    serve()
