"""Run Moses, ``mert-moses.pl`` and this program on the same text."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import pytest

from mosesplug.cli.main import main
from mosesplug.cli.moses.install import LAUNCHERS, launcher
from tests.real_decoder.system import System

__all__ = ["FLAGS", "NBEST", "Programs", "run_here", "start_fork"]

FLAGS = "-threads 1 -v 0 -search-algorithm 1 -cube-pruning-pop-limit 60 -s 30"
NBEST = 25


@dataclass(frozen=True)
class Programs:
    """The programs, a system, and a directory for their files.

    Attributes:
        home: of Moses' programs.
        system: that they tune.
        directory: for working directories.
    """

    home: Path
    system: System
    directory: Path

    @property
    def moses(self) -> Path:
        """The decoder."""
        return self.home / "bin" / "moses"

    def shorten(self, count: int) -> Programs:
        """Return the same programs on the first ``count`` sentences."""
        parts = {name: self.directory / name for name in ("source", "reference")}
        for name, path in parts.items():
            lines = getattr(self.system, name).read_text().splitlines(keepends=True)
            path.write_text("".join(lines[:count]))
        return replace(self, system=replace(self.system, **parts))

    def link_programs(self) -> Path:
        """Return a directory of Moses' programs and our classifier, which it lacks."""
        directory = self.directory / "mertdir"
        directory.mkdir()
        for path in (self.home / "bin").iterdir():
            (directory / path.name).symlink_to(path)
        classifier = directory / "megam_i686.opt"
        classifier.write_bytes(launcher(*LAUNCHERS[classifier.name]))
        classifier.chmod(0o755)
        return directory

    def decode(self, *arguments: str | Path) -> bytes:
        """Return what Moses prints."""
        command = [self.moses, *arguments, "-v", "0"]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def arguments(
        self, working: str, *, config: Path, source: Path | None, flags: str
    ) -> list[str]:
        """Return the arguments that the script and its replacement share."""
        return [
            *map(str, (source or self.system.source, self.system.reference, self.moses, config)),
            *("--working-dir", str(self.directory / working), "--nbest", str(NBEST)),
            *("--rootdir", str(self.home / "scripts"), "--no-filter-phrase-table"),
            *("--predictable-seeds", "--random-restarts", "5", "--decoder-flags", flags),
        ]

    def script(
        self,
        working: str,
        *more: str,
        config: Path | None = None,
        source: Path | None = None,
        flags: str = FLAGS,
        mertdir: Path | None = None,
        iterations: int = 2,
    ) -> Path:
        """Run ``mert-moses.pl`` and return its working directory.

        What it says is in a file beside the directory, ``{working}.log``.
        """
        words = self.arguments(
            working, config=config or self.system.config, source=source, flags=flags
        )
        words += ["--mertdir", str(mertdir or self.home / "bin")]
        words += [f"--maximum-iterations={iterations}", *more]
        script = self.home / "scripts" / "training" / "mert-moses.pl"
        done = subprocess.run(
            ["perl", script, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        assert not done.returncode, done.stderr[-3000:]
        (self.directory / f"{working}.log").write_text(done.stderr)
        return self.directory / working

    def ours(
        self,
        working: str,
        *more: str,
        config: Path | None = None,
        source: Path | None = None,
        flags: str = FLAGS,
        iterations: int = 2,
    ) -> Path:
        """Run ``mert-moses`` and return its working directory."""
        words = self.arguments(
            working, config=config or self.system.config, source=source, flags=flags
        )
        run_here(["mert-moses", *words, f"--maximum-iterations={iterations}", *more])
        return self.directory / working

    def tune_words(self, working: str, *more: str, config: Path | None = None) -> list[str]:
        """Return the arguments of ``mosesplug`` that tune the system."""
        return [
            *("tune", str(self.system.source), str(self.system.reference), str(self.moses)),
            *(str(config or self.system.config), "--working-dir", str(self.directory / working)),
            *("--nbest", str(NBEST), "--seed", "1", "--threads", "1"),
            *("--decoder-flags", FLAGS, *more),
        ]

    def tune(self, working: str, *more: str, config: Path | None = None) -> Path:
        """Run ``mosesplug tune`` and return its working directory."""
        run_here(self.tune_words(working, *more, config=config))
        return self.directory / working


def run_here(words: Sequence[str]) -> None:
    """Run ``mosesplug`` in this process: its kernels are compiled once."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert not ended.value.code


def start_fork(words: Sequence[str]) -> int:
    """Run ``mosesplug`` in a fork of this process, in a session of its own; return its number.

    The fork has the modules and kernels that this process has loaded.
    """
    child = os.fork()
    if not child:
        _become_run(words)
    return child


def _become_run(words: Sequence[str]) -> NoReturn:
    code = 1
    with contextlib.suppress(BaseException):
        os.setsid()
        with Path(os.devnull).open("w") as nowhere:
            for descriptor in (1, 2):
                os.dup2(nowhere.fileno(), descriptor)
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                run_here(words)
        code = 0
    os._exit(code)
