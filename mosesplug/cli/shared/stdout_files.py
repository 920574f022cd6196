"""``-`` as the name of an output file: stdout, for every option."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mosesplug.cli.shared.inputs import find_mark
from mosesplug.cli.shared.parameters import STDOUT_OPTION
from mosesplug.errors import UsageError
from mosesplug.options import Opt
from mosesplug.scratch import ScratchDirectory

_NAMES = (Path("-"), Path("/dev/stdout"))
_PREFIX = "mosesplug-stdout-"


@contextlib.contextmanager
def route_stdout(
    parameters: Iterable[inspect.Parameter], values: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a command, without ``-`` as the name of an output.

    ``Output`` means stdout without a name. Other outputs are written to a temporary file, and to
    stdout when the command has ended; what it prints meanwhile goes to stderr.

    Raises:
        UsageError: two outputs are stdout.
    """
    known = {parameter.name: parameter for parameter in parameters}
    changed = dict(values)
    files: list[str] = []
    for name, value in values.items():
        option = find_mark(known[name], Opt) if value in _NAMES else None
        if option is None or not option.is_output:
            continue
        if STDOUT_OPTION in known[name].annotation.__metadata__:
            changed[name] = None
        else:
            files.append(name)
    if len(files) > 1:
        names = " and ".join(f"--{file.replace('_', '-')}" for file in files)
        raise UsageError(f"{names} cannot both be stdout: give one of them a file")
    if not files:
        yield changed
        return
    with ScratchDirectory(_PREFIX) as directory:
        path = Path(directory, "stdout")
        with contextlib.redirect_stdout(sys.stderr):
            yield changed | {files[0]: path}
        if path.exists():
            # Loads NumPy, which --help does not need.
            from mosesplug.cli.shared.output import print_bytes

            print_bytes(path.read_bytes())


def goes_to_stdout(path: Path | None) -> bool:
    """Return whether a file of a command is what ``-`` stands for."""
    return path is not None and path.parent.name.startswith(_PREFIX)
