"""Run the examples of a page in an empty directory."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mosesplug.cli.main import main
from tests.docs.examples import Block, Command, matches, split_commands

__all__ = ["PAGES", "ROOT", "Page", "PageError", "run_command"]

ROOT = Path(__file__).parents[2]
PAGES = [
    page.relative_to(ROOT)
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "_build" not in page.parts
]
"""The README and the pages of the manual."""

_QUOTED = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
_NEEDS_A_SHELL = re.compile(r"[|<>$;&*?~()\[\]`!#]")


class PageError(AssertionError):
    """An example of a page fails, or prints something else than the page shows."""


@dataclass
class Page:
    """A page whose examples run in order.

    Attributes:
        name: path of the page.
        directory: current directory of the examples.
        environment: of the commands.
        clone: the repository in the examples.
        stand_ins: each does what some commands do, given the words and the directory, and returns
            whether it did.
        variables: what the Python blocks share.
    """

    name: str
    directory: Path
    environment: Mapping[str, str]
    clone: Path
    stand_ins: Sequence[Callable[[str, Path], bool]] = ()
    variables: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def run(self, block: Block) -> None:
        """Run a block.

        Raises:
            PageError: it fails, or its output differs.
        """
        place = f"{self.name}:{block.line}"
        if block.language == "python":
            with contextlib.chdir(self.directory), _environment(self.environment):
                exec(compile(block.text, place, "exec"), self.variables)
            return
        for command in split_commands(block.text):
            self._run_command(command, place)

    def _run_command(self, command: Command, place: str) -> None:
        words = command.words.replace("/path/to/mosesplug", str(self.clone))
        if any(stand_in(words, self.directory) for stand_in in self.stand_ins):
            return
        code, printed = run_command(words.replace("\\\n", " "), self.directory, self.environment)
        if code:
            raise PageError(f"{place}: exit code {code} of\n{words}\n{printed}")
        if not matches(command.output, printed):
            shown = "\n".join(command.output)
            raise PageError(f"{place}:\n{words}\nshould print\n{shown}\nand prints\n{printed}")


def run_command(words: str, directory: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command; return its exit code, and its stderr followed by its stdout.

    A plain call of mosesplug runs in this process, which saves starting Python and loading
    compiled kernels.
    """
    if not words.startswith(("mosesplug ", "mert-moses ")) or _NEEDS_A_SHELL.search(
        _QUOTED.sub("", words)
    ):
        return _run_shell(words, directory, environment)
    arguments = shlex.split(words.removeprefix("mosesplug "))
    printed = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    with (
        contextlib.chdir(directory),
        _environment(environment),
        contextlib.redirect_stdout(printed[1]),
        contextlib.redirect_stderr(printed[0]),
    ):
        try:
            main(arguments)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    texts = []
    for stream in printed:
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
    return code, "".join(texts)


def _run_shell(words: str, directory: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a shell command; return its exit code, and its stderr followed by its stdout."""
    shell = shutil.which("bash") or "sh"
    done = subprocess.run(
        [shell, "-c", words], cwd=directory, env=environment, capture_output=True, check=False
    )
    return done.returncode, (done.stderr + done.stdout).decode(errors="replace")


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Any:
    earlier = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(earlier)
