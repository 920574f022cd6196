"""The tuning programs of the comparison: one command line each.

Moses' side is ``mert-moses.pl`` with its own programs; ``pro`` needs megam, which Moses does not
ship, so the classifier there is this package's. Our side is ``mosesplug tune``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mosesplug.optimizers.registry import algorithm, built_in_algorithms


@dataclass(frozen=True)
class Task:
    """What every system gets.

    Attributes:
        source, reference: the tuning set.
        ini: the decoder's configuration, with absolute paths.
        moses: Moses' own programs (``bin`` and ``scripts``).
        tools: programs that ``mert-moses.pl`` finds by ``--mertdir``.
        flags: the decoder's flags, the same for all.
        threads: threads of the decoder and of the optimizers.
    """

    source: Path
    reference: Path
    ini: Path
    moses: Path
    tools: Path
    flags: str
    threads: int


@dataclass(frozen=True)
class TuningSystem:
    """A tuning program with its options.

    Attributes:
        name: in the table.
        command: the command line for a task, a seed and a working directory that does not exist;
            empty for weights that are not tuned.
        explanation: what it is, one line.
    """

    name: str
    command: Callable[[Task, int, Path], list[str]]
    explanation: str


def list_systems() -> dict[str, TuningSystem]:
    """Return every system by name, the baseline first."""
    systems = [
        TuningSystem(
            "moses-mert",
            script(lambda seed, threads: ["--mertargs", f"--threads {threads} -r {seed}"]),
            "mert-moses.pl",
        ),
        TuningSystem(
            "moses-kbmira",
            script(lambda seed, _: ["--batch-mira", "--batch-mira-args", f"-J 60 -r {seed}"]),
            "mert-moses.pl --batch-mira, kbmira as built",
        ),
        TuningSystem(
            "moses-pro",
            script(lambda seed, _: ["--pairwise-ranked", "--proargs", f"-r {seed}"]),
            "mert-moses.pl --pairwise-ranked, with the classifier of mosesplug",
        ),
        TuningSystem("untuned", lambda *_: [], "the weights of moses.ini"),
    ]
    systems += [tune_system(name, *options) for name, options in _list_options().items()]
    return {system.name: system for system in systems}


def tune_system(name: str, *options: str) -> TuningSystem:
    """Return ``mosesplug tune`` with options."""
    return TuningSystem(name, tune(*options), " ".join(["mosesplug tune", *options]))


def _list_options() -> dict[str, tuple[str, ...]]:
    """Return the options of each way to tune with this package, by the name in the table."""
    entries = [algorithm(name) for name in built_in_algorithms()]
    learners = [entry.name for entry in entries if entry.learner is not None]
    return {
        **{entry.name: ("--algorithm", entry.name) for entry in entries},
        "mert-restarts": ("--algorithm", "mert", "--option", "restarts=20"),
        **{
            f"forest-{entry.name}": ("--forest", "--algorithm", entry.name)
            for entry in entries
            if entry.graphs
        },
        **{
            f"online-{name}": ("--online", "--algorithm", name, "--epochs", "3")
            for name in learners
        },
    }


def script(options: Callable[[int, int], list[str]]) -> Callable[[Task, int, Path], list[str]]:
    """Return the command line of ``mert-moses.pl`` with options for a seed and threads."""

    def command(task: Task, seed: int, directory: Path) -> list[str]:
        return [
            *("perl", str(task.moses / "scripts" / "training" / "mert-moses.pl")),
            *(str(task.source), str(task.reference), str(task.moses / "bin" / "moses")),
            *(str(task.ini), "--mertdir", str(task.tools)),
            *("--rootdir", str(task.moses / "scripts"), "--no-filter-phrase-table"),
            *("--working-dir", str(directory)),
            *("--decoder-flags", f"-threads {task.threads} {task.flags}"),
            *options(seed, task.threads),
        ]

    return command


def tune(*options: str) -> Callable[[Task, int, Path], list[str]]:
    """Return the command line of ``mosesplug tune`` with options."""

    def command(task: Task, seed: int, directory: Path) -> list[str]:
        return [
            *(str(Path(sys.executable).with_name("mosesplug")), "tune"),
            *(str(task.source), str(task.reference), str(task.moses / "bin" / "moses")),
            *(str(task.ini), "--working-dir", str(directory)),
            *("--decoder-flags", f"-threads {task.threads} {task.flags}"),
            *("--threads", str(task.threads), "--seed", str(seed), *options),
        ]

    return command
