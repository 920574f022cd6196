"""Copies of the repository for the manual's examples, with a demo of few sentences."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.running import ROOT, PageError, run_command
from tests.tuning.bundled import DEMO, write_demo_tables

__all__ = ["Clones"]

_TEXTS = ("tune.tarvian", "tune.english", "test.tarvian", "test.english0", "test.english1")
_PREPARE = re.compile(r"sh \S+/moses-config/demo/prepare(?: \w+)*")


@dataclass
class Clones:
    """The copies, made when they are needed.

    Attributes:
        directory: where they are.
        environment: of the commands that prepare the files of an example.
        prepared: what those commands have made, by their words.
    """

    directory: Path
    environment: Mapping[str, str]
    prepared: dict[str, Path] = field(default_factory=dict)

    def path(self, sentences: int) -> Path:
        """Return the copy whose demo has so many sentences."""
        clone = self.directory / str(sentences)
        if not clone.exists():
            demo = clone / DEMO.relative_to(ROOT)
            demo.mkdir(parents=True)
            for name in ("prepare", "moses.ini", "lm.arpa.gz", "sparse.toml"):
                shutil.copy(DEMO / name, demo)
            for name in _TEXTS:
                lines = (DEMO / name).read_bytes().splitlines(keepends=True)
                (demo / name).write_bytes(b"".join(lines[:sentences]))
            sources = [demo / name for name in _TEXTS if name.endswith("tarvian")]
            write_demo_tables(demo, [line for p in sources for line in p.read_bytes().splitlines()])
            (demo / "making").symlink_to(DEMO / "making")
            (clone / "docs").symlink_to(ROOT / "docs")
        return clone

    def prepare(self, words: str, directory: Path) -> bool:
        """Do what a command that prepares files does; return whether it is such a command.

        Pages begin with the same few commands, so each runs once and its files are copied.

        Raises:
            PageError: the command fails, or is not the first of its page.
        """
        if not _PREPARE.fullmatch(words):
            return False
        if words not in self.prepared:
            made = self.directory / f"prepared{len(self.prepared)}"
            made.mkdir()
            code, printed = run_command(words, made, self.environment)
            if code:
                raise PageError(f"exit code {code} of\n{words}\n{printed}")
            self.prepared[words] = made
        if any(directory.iterdir()):
            raise PageError(f"{words} is not the first command of the page")
        shutil.copytree(self.prepared[words], directory, symlinks=True, dirs_exist_ok=True)
        return True
