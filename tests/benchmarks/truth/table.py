"""The table of a comparison, from the results that are there."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import mosesplug
from tests.benchmarks.truth.protocol import Result, TestSet


def format_table(
    results: Sequence[Result], order: Sequence[str], judged: Sequence[TestSet], out: Path
) -> str:
    """Return a Markdown table, one row a system, tested against the first of ``order``.

    ``BLEU`` is the mean of the test sets: mean and standard deviation over seeds. ``p`` is from
    approximate randomization over all seeds of both systems (``mosesplug compare``), for each test
    set. Wall and CPU seconds are of the whole run, and means over seeds.
    """
    runs = {name: [result for result in results if result.system == name] for name in order}
    runs = {name: found for name, found in runs.items() if found}
    baseline = next(iter(runs))
    head = ["system", "seeds", "BLEU", *(test.name for test in judged), "p", "wall s", "CPU s"]
    lines = [[*head, "iterations"], ["---"] * (len(head) + 1)]
    for name, found in runs.items():
        p = [] if name == baseline else [_test(runs[baseline], found, test, out) for test in judged]
        means = [statistics.mean(result.bleu.values()) for result in found]
        lines.append(
            [
                name,
                str(len(found)),
                _spread(means),
                *(_spread([result.bleu[test.name] for result in found]) for test in judged),
                ", ".join(f"{value:.3f}" for value in p),
                f"{statistics.mean(result.wall for result in found):.0f}",
                f"{statistics.mean(result.cpu for result in found):.0f}",
                f"{statistics.mean(result.iterations for result in found):.1f}",
            ]
        )
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _spread(values: Sequence[float]) -> str:
    """Return mean and standard deviation, the latter of two values or more."""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"


def _test(base: Sequence[Result], new: Sequence[Result], test: TestSet, out: Path) -> float:
    """Return p of the difference between all runs of two systems on a test set."""
    paths = {
        name: [out / f"{result.system}.{result.seed}" / f"{test.name}.out" for result in found]
        for name, found in (("base", base), ("new", new))
    }
    scores = mosesplug.compare(paths, test.reference, "BLEU", samples=1)
    return float(scores[1].p_randomization)
