"""A toy system to tune: a quick decoder, a text of a few sentences, and what a run leaves."""

from __future__ import annotations

import json
import multiprocessing
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import forkserver
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mosesplug.decoders import batch_process, prepare, program
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.moses import parse_flags
from mosesplug.decoders.processes.run import FinishedProcess, LineCounter, run_command
from mosesplug.events import Event
from mosesplug.metrics import metric
from mosesplug.tuning import (
    Configuration,
    DecodingSettings,
    OptimizerSettings,
    decode_result,
    warming,
)
from mosesplug.tuning.parallel import executors
from tests.tuning import forests
from tests.tuning.bundled import BUNDLED_PROGRAM, call_bundled_decoder
from tests.tuning.forests import GRAPH_PROGRAM, TOY_DECODER, toy_decoder

# As a module, since Python compiles a program at each start.
_RUN = shlex.quote(
    f"import sys; sys.path.insert(0, {str(TOY_DECODER.parent)!r}); import decoder; decoder.main()"
)
TOY_PROGRAM = f'#!/bin/sh\nexec {sys.executable} -IS -c {_RUN} "$@"\n'


@dataclass(frozen=True)
class ToySystem:
    """Paths of a toy system; ``configuration`` makes runs on it."""

    directory: Path
    decoder: Path

    def configuration(
        self,
        name: str = "work",
        *,
        flags: str = "",
        decoding: dict[str, Any] | None = None,
        optimization: dict[str, Any] | None = None,
        **more: Any,
    ) -> Configuration:
        """A run in the working directory ``name``: short lists, few restarts, a fixed seed."""
        decoder = MosesDecoder(self.decoder, parse_flags(flags))
        plain = Configuration(
            input=self.directory / "input",
            references=self.directory / "reference",
            config=self.directory / "moses.ini",
            working_directory=self.directory / name,
            metric=metric("BLEU", "case:true"),
            decoding=replace(DecodingSettings(decoder, nbest=15), **(decoding or {})),
            optimization=replace(
                OptimizerSettings(options={"restarts": 1}, seed=5), **(optimization or {})
            ),
        )
        return replace(plain, **({"maximum_iterations": 3} | more))


@dataclass
class Log:
    """A watcher that remembers."""

    events: list[Event] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture(autouse=True)
def _no_compiling_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_PATIENCE", 3600.0)


@pytest.fixture
def toy(tmp_path: Path) -> ToySystem:
    """A toy system of 12 sentences in a directory of its own."""
    return make_toy(tmp_path)


def make_toy(directory: Path, sentences: int = 12) -> ToySystem:
    """Write a toy system into a directory."""
    decoder = directory / "decoder"
    decoder.write_text(TOY_PROGRAM)
    decoder.chmod(0o755)
    toy_decoder().make(directory, sentences)
    return ToySystem(directory, decoder)


@pytest.fixture
def decoder_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call toy and bundled decoders as functions, in tests that are not about processes.

    A decoder that a test has changed, or that is to fail or to be slow, still runs as a program.
    """
    for module in (program, prepare, batch_process, decode_result):
        monkeypatch.setattr(module, "run_command", _call_decoder)


def _call_decoder(
    command: Sequence[str],
    *,
    directory: Path,
    stdout: Path,
    stderr: Path,
    on_lines: Callable[[int], None] | None = None,
    **others: Any,
) -> FinishedProcess:
    """Do what ``run_command`` does, but call the main function of a decoder of the tests."""
    functions = {
        TOY_PROGRAM: toy_decoder().main,
        GRAPH_PROGRAM: forests.main,
        BUNDLED_PROGRAM: call_bundled_decoder,
    }
    main = functions.get(Path(command[0]).read_text())
    if main is None or {"-fault", "-delay"} & set(command):
        return run_command(
            command, directory=directory, stdout=stdout, stderr=stderr, on_lines=on_lines, **others
        )
    start = time.monotonic()
    stdout.unlink(missing_ok=True)
    stderr.unlink(missing_ok=True)
    with stdout.open("w") as out, stderr.open("w") as err:
        main(command[1:], str(directory), out, err)
    if on_lines is not None:
        on_lines(LineCounter(stdout).count())
    return FinishedProcess(tuple(command), stdout, stderr, time.monotonic() - start)


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fork worker processes from one with all imports, in tests that are not about their start."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.tuning.parallel.preloaded_workers"])
    start = SimpleNamespace(
        get_context=lambda method: context, active_children=multiprocessing.active_children
    )
    monkeypatch.setattr(executors, "multiprocessing", start)
    yield
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


@pytest.fixture
def log() -> Log:
    """A fresh watcher."""
    return Log()


@pytest.fixture
def left_by_run() -> Callable[[Path], dict[str, bytes]]:
    """Reads all files of a working directory, times and the directory's own name taken out."""

    def read(directory: Path) -> dict[str, bytes]:
        files = {
            path.name: path.read_bytes().replace(str(directory).encode(), b"WORK")
            for path in sorted(directory.iterdir())
            if path.is_file() and path.name != "settings.toml"  # what was asked for, no result
        }
        for name, data in files.items():
            if name.endswith("moses.ini"):
                files[name] = re.sub(rb"# finished .*", b"", data)
        if "summary.json" in files:
            summary = json.loads(files["summary.json"])
            del summary["finished"]
            for iteration in summary["iterations"]:
                del iteration["seconds"]
            files["summary.json"] = json.dumps(summary).encode()
        return files

    return read
