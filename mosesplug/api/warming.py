"""Compile kernels in advance, so that no later command waits for the compiler."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mosesplug.api import warming_tasks as work
from mosesplug.errors import UsageError, suggest
from mosesplug.kernels import count_compiled
from mosesplug.metrics.plain import kernels_only
from mosesplug.scratch import ScratchDirectory

__all__ = ["TASKS", "WarmUpReport", "warm_up"]

ALGORITHMS = ("mert", "kbmira")


@dataclass(frozen=True)
class WarmUpReport:
    """The kernels that were compiled for a task.

    Attributes:
        task: a command, with the option that makes it use other kernels: ``tune --forest``.
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
        tasks: commands and Moses' programs: ``score``, ``optimize``, ``tune``, ``forest``,
            ``mbr``, ``oracle``, ``extractor``, ``mert``, ``kbmira``, ``pro``; empty for all.
            ``tune`` includes ``tune --forest`` and ``tune --online``, which can be named alone,
            and ``optimize`` includes ``optimize --graphs``.
        algorithms: the algorithms of ``optimize`` and ``tune``. ``optimize --graphs`` and
            ``tune --online`` skip those that cannot learn from graphs, or online; the latter uses
            ``mira`` if none of them can.

    Raises:
        UsageError: an unknown command or algorithm.

    Example:
        >>> import mosesplug
        >>> [warming.task for warming in mosesplug.warm_up(["score"])]
        ['score']
    """
    from mosesplug.optimizers import algorithm as find_algorithm

    algorithms = tuple(dict.fromkeys(find_algorithm(name).name for name in algorithms))
    done = []
    for task in _choose_tasks(tasks) if tasks else TASKS:
        start, before = time.perf_counter(), count_compiled()
        with ScratchDirectory() as directory, kernels_only():
            TASKS[task](Path(directory), algorithms)
        done.append(WarmUpReport(task, count_compiled() - before, time.perf_counter() - start))
    return done


TASKS: dict[str, Callable[[Path, Sequence[str]], None]] = {
    "score": work.score_translations,
    "optimize": work.learn_from_lists,
    "optimize --graphs": work.learn_from_graphs,
    "tune": work.tune_on_lists,
    "tune --forest": work.tune_on_graphs,
    "tune --online": work.tune_online,
    "forest": work.search_graphs,
    "mbr": work.minimize_risk,
    "oracle": work.search_oracles,
    "extractor": work.extract,
    "mert": work.learn_by_mert,
    "kbmira": work.learn_by_kbmira,
    "pro": work.sample_pairs_of_pro,
}
"""The function that runs the kernels of each task."""

_SYNONYMS = {
    "compare": "score",
    "mert-moses": "tune",
    "mert-moses.pl": "tune",
    "rerank": "mbr",
    "hgdecode": "forest",
}
"""Commands that call the kernels of another one."""


def _choose_tasks(commands: Sequence[str]) -> list[str]:
    """Return the tasks of some commands, each once.

    Raises:
        UsageError: an unknown command.
    """
    chosen: dict[str, None] = {}
    for command in commands:
        name = _SYNONYMS.get(command, command)
        # A command stands for its variants, too.
        variants = [task for task in TASKS if task == name or task.startswith(f"{name} --")]
        if not variants:
            raise UsageError(
                f"warm-up has nothing to compile for {command!r}: use {', '.join(TASKS)}"
                f"{suggest(command, [*TASKS, *_SYNONYMS])}"
            )
        chosen |= dict.fromkeys(variants)
    return list(chosen)
