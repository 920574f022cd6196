"""Compile kernels in advance, so that no later command waits for the compiler."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mosesplug.errors import UsageError
from mosesplug.kernels import count_compiled
from mosesplug.metrics.plain import kernels_only

__all__ = ["TASKS", "WarmUpReport", "warm_up"]

ALGORITHMS = ("mert", "kbmira")


@dataclass(frozen=True)
class WarmUpReport:
    """The kernels that were compiled for a task.

    Attributes:
        task: ``score``, ``optimize`` or ``tune``.
        kernels: number of kernels that were compiled; 0 if all were in the cache.
        seconds: wall time.

    Example:
        >>> import mosesplug
        >>> mosesplug.WarmUpReport("score", 0, 0.5).kernels
        0
    """

    task: str
    kernels: int
    seconds: float


def warm_up(
    tasks: Sequence[str] = (), algorithms: Sequence[str] = ALGORITHMS
) -> list[WarmUpReport]:
    """Compile the kernels of some tasks into the cache.

    The tasks run on a few sentences.

    Args:
        tasks: ``score`` (also for ``compare``), ``optimize`` and ``tune``; empty for all.
        algorithms: the algorithms of ``optimize`` and ``tune``.

    Raises:
        UsageError: an unknown task or algorithm.

    Example:
        >>> import mosesplug
        >>> [warming.task for warming in mosesplug.warm_up(["score"])]
        ['score']
    """
    for task in tasks:
        if task not in TASKS:
            raise UsageError(f"unknown task {task!r}: use {', '.join(TASKS)}")
    done = []
    for task in tasks or TASKS:
        start, before = time.perf_counter(), count_compiled()
        with tempfile.TemporaryDirectory(prefix="mosesplug-warm-up-") as directory, kernels_only():
            TASKS[task](Path(directory), algorithms)
        done.append(WarmUpReport(task, count_compiled() - before, time.perf_counter() - start))
    return done


_REFERENCES = ("the red house is old", "a dog runs in the park", "they drink cold milk now")
_GROUPS = ("LM0= {0} Distortion0= {1} TM0= {2} {3}", "LM0= {3} Distortion0= {0} TM0= {1} {2}")


def _write_lists(directory: Path) -> tuple[list[Path], Path]:
    """Write two n-best lists and their references; return the paths."""
    references = directory / "references"
    references.write_text("".join(f"{line}\n" for line in _REFERENCES))
    paths = []
    for number, groups in enumerate(_GROUPS):
        lines = []
        for sentence, reference in enumerate(_REFERENCES):
            words = reference.split()
            for rank in range(len(words)):
                text = " ".join([*words[:rank], words[rank][::-1], *words[rank + 1 :]])
                values = [-1.0 - (rank * step + number) % 5 / 4 for step in (1, 2, 3, 4)]
                lines.append(f"{sentence} ||| {text} ||| {groups.format(*values)} ||| {-rank}\n")
        paths.append(directory / f"run{number + 1}.best100.out")
        paths[-1].write_text("".join(lines))
    return paths, references


def _warm_score(directory: Path, algorithms: Sequence[str]) -> None:
    from mosesplug.api.scoring import compare, score

    _, references = _write_lists(directory)
    for name, skipped in (("one", 1), ("other", 2)):
        text = "".join(f"{line[skipped:]}\n" for line in _REFERENCES)
        (directory / name).write_text(text)
    score(directory / "one", references)
    compare({name: directory / name for name in ("one", "other")}, references)


def _warm_optimize(directory: Path, algorithms: Sequence[str]) -> None:
    from mosesplug.api.optimize import optimize

    lists, references = _write_lists(directory)
    for algorithm in algorithms:
        optimize(lists, references=references, algorithm=algorithm, seed=1, threads=1)


def _warm_tune(directory: Path, algorithms: Sequence[str]) -> None:
    from mosesplug.api.nbest import read_nbest
    from mosesplug.api.tuner import Tuner

    lists, references = _write_lists(directory)
    for algorithm in algorithms:
        with Tuner.open(
            directory / algorithm,
            references=references,
            features=["LM0", "Distortion0", "TM0", "TM0"],
            algorithm=algorithm,
            seed=1,
            max_iterations=2,
            threads=1,
        ) as tuner:
            for path in lists:
                request = tuner.ask()
                if request is None:
                    break
                tuner.tell(request, read_nbest(path))


TASKS: dict[str, Callable[[Path, Sequence[str]], None]] = {
    "score": _warm_score,
    "optimize": _warm_optimize,
    "tune": _warm_tune,
}
"""The function that runs the kernels of each task."""
