"""A system that tunes in a second or two, and the command lines of all regimes.

The demo's first sentences with the bundled decoder, or a toy with the toy decoder, which starts
faster.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "moses-config" / "demo"
TOY = ROOT / "tests" / "data" / "toy" / "decoder.py"
_SENTENCES, _HELD_OUT = 6, 3

_NO_CHANGE = "--min-change=0"
"""Which ``mert-moses`` does not have."""
_SHARED = ["--seed=5", "--threads=1", "--nbest=10", "--quiet", _NO_CHANGE]
_BATCH = ["--max-iterations=2"]
_ONE_START = ["--algorithm=mert", "--option=restarts=1"]
_ONLINE = ["--online", "--epochs=2", "--option=batch=2"]
_LEARNER = ["--algorithm=adagrad", "--option=batch=2", "--epochs=2"]
_SCRIPT = ["--maximum-iterations=2", "--random-restarts=1", "--return-best-dev"]
_FILTERED = ["--filter-command=FILTER"]
_HELD_OUT_TEXT = ["--heldout", "HELDOUT", "HELDOUT_REFERENCE"]

REGIMES = {
    "batch": [*_BATCH, *_FILTERED, *_ONE_START, "--historic-bests"],
    "batch, held out": [*_BATCH, "--algorithm=kbmira", *_HELD_OUT_TEXT],
    "batch, graphs": [*_BATCH, "--forest", "--algorithm=kbmira"],
    "batch, command": [
        *(*_BATCH, "--algorithm=kbmira", "--weights-format=one-line"),
        "--decode-command=COMMAND {weights} {input} {nbest} {nbest-size}",
    ],
    "batch, runs": [*_BATCH, "--algorithm=kbmira", "--runs=2"],
    "batch, domains": [*_BATCH, "--algorithm=kbmira", "--domains=DOMAINS"],
    "ask and tell": ["--max-iterations=2", "--algorithm=kbmira", "--weights-format=one-line"],
    "maintenance": [],
    "batch, sharded": [*_BATCH, *_LEARNER, "--shards=2"],
    "batch, overwriting": [*_BATCH, "--algorithm=kbmira", "--overwrite"],
    "mert-moses": [*_SCRIPT, "--filtercmd=FILTER", "--keep-extractor-files"],
    "batch, async": [*_BATCH, *_LEARNER, "--async", "--async-order=fixed", "--shards=2"],
    "online, servers": [*_ONLINE, "--algorithm=mira", "--online-decoder=server"],
    "online, processes": [
        *_ONLINE,
        *_FILTERED,
        *_HELD_OUT_TEXT,
        *("--algorithm=adagrad", "--online-decoder=process", "--heldout-every=2"),
    ],
    "online, sharded": [
        *_ONLINE,
        *("--algorithm=mira", "--online-decoder=server", "--shards=2", "--workers=threads"),
    ],
    "online, sharded, worker processes": [
        *_ONLINE,
        *("--algorithm=mira", "--online-decoder=process", "--shards=2", "--workers=processes"),
    ],
    "online, async": [
        *_ONLINE,
        *("--algorithm=adagrad", "--online-decoder=server"),
        *("--async", "--async-order=fixed", "--shards=2"),
    ],
}
"""Additions to the command line; names in capitals are files of the system.

The regimes of ``steps`` are sequences of commands.
"""

ASK_AND_TELL, MAINTENANCE = "ask and tell", "maintenance"
SEQUENCES = frozenset({ASK_AND_TELL, MAINTENANCE})
"""Regimes of ``steps``."""
MAINTAINED = "maintained"
"""The run in a system's directory whose store is maintained."""

EARLIER = {"batch, overwriting": "online, sharded, worker processes"}
"""Regimes that find an earlier run in the working directory: of which regime that was."""

SERVED = frozenset(name for name, words in REGIMES.items() if "--online-decoder=server" in words)
"""Regimes that keep servers running, which the toy decoder cannot be."""


@dataclass(frozen=True)
class System:
    """A system to tune.

    Attributes:
        directory: of its files.
        flags: for the decoder.
    """

    directory: Path
    flags: str

    def arguments(self, regime: str, work: Path, *, resume: bool) -> list[str]:
        """The command line of ``mosesplug`` for a run in a working directory.

        Args:
            regime: name in ``REGIMES``.
            work: the working directory.
            resume: whether the run is to go on with what is there.
        """
        files = {
            "FILTER": "filter",
            "HELDOUT": "heldout",
            "HELDOUT_REFERENCE": "heldout-reference",
            "DOMAINS": "domains",
        }
        words = []
        command = shlex.quote(str(self.directory / "command"))
        for word in REGIMES[regime]:
            word = word.replace("COMMAND", command)
            if resume and word == "--overwrite":
                continue
            head, equals, tail = word.rpartition("=")
            place = files.get(tail)
            words.append(word if place is None else f"{head}{equals}{self.directory / place}")
        if regime == MAINTENANCE:
            return ["maintain", str(self.directory), str(work)]
        if regime == ASK_AND_TELL:
            return ["ask-and-tell", str(self.directory), str(work), *_SHARED, *words]
        is_command = regime == "batch, command"
        names = ["input", "reference", *([] if is_command else ["decoder"]), "moses.ini"]
        given = (self.directory / name for name in names)
        is_script = regime == "mert-moses"
        return [
            "mert-moses" if is_script else "tune",
            *map(str, given),
            f"--working-dir={work}",
            *([f"--decoder-flags={self.flags}"] if self.flags and not is_command else []),
            *(_SHARED if not is_script else [word for word in _SHARED if word != _NO_CHANGE]),
            *words,
            *(["--continue"] if resume else []),
        ]


def make_demo(directory: Path) -> System:
    """The demo's model and some of its sentences, with the bundled decoder."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, source in (("input", "tune.tarvian"), ("reference", "tune.english")):
        lines = (DEMO / source).read_bytes().splitlines(keepends=True)
        (directory / name).write_bytes(b"".join(lines[:_SENTENCES]))
        held_out = "heldout" if name == "input" else "heldout-reference"
        (directory / held_out).write_bytes(b"".join(lines[-_HELD_OUT:]))
    config = (DEMO / "moses.ini").read_text()
    (directory / "moses.ini").write_text(config.replace("path=", f"path={DEMO}/"))
    # Its current directory is the working directory, and what is installed may be another version.
    search = f"PYTHONPATH={shlex.quote(str(ROOT))}"
    code = "from mosesplug.extras.phrase_decoder.program import main; main()"
    _write_script(directory / "decoder", f'{search} exec {_python()} -c "{code}" "$@"')
    _write_parts(directory)
    return System(directory, "-stack 10")


def make_toy(directory: Path) -> System:
    """The toy, with its decoder."""
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-IS", TOY, "--make", directory, str(_SENTENCES)], check=True)
    for name, source in (("heldout", "input"), ("heldout-reference", "reference0")):
        lines = (directory / source).read_bytes().splitlines(keepends=True)
        (directory / name).write_bytes(b"".join(lines[:_HELD_OUT]))
    _write_script(directory / "decoder", f'exec {_python()} -IS {shlex.quote(str(TOY))} "$@"')
    _write_parts(directory)
    return System(directory, "-sparse")


def _python() -> str:
    return shlex.quote(sys.executable)


def _write_parts(directory: Path) -> None:
    _write_filter(directory)
    _write_command(directory)
    labels = ("news", "talk") * _SENTENCES
    (directory / "domains").write_text("".join(f"{label}\n" for label in labels[:_SENTENCES]))


def _write_filter(directory: Path) -> None:
    """A filter that keeps the whole model, and takes its time."""
    _write_script(directory / "filter", 'mkdir "$1" && sleep 0.1 && cp "$2" "$1/moses.ini"')


def _write_command(directory: Path) -> None:
    """The decoder as a command: WEIGHTS INPUT NBEST SIZE, with the weights on one line."""
    decoder, config = (shlex.quote(str(directory / name)) for name in ("decoder", "moses.ini"))
    call = f'{decoder} -config {config} -weight-overwrite "$(cat "$1")" -input-file "$2"'
    _write_script(directory / "command", f'exec {call} -n-best-list "$3" "$4" distinct')


def _write_script(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\n{command}\n")
    path.chmod(0o755)
