"""A run that is killed: which, what must come of it, and the table of many."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.long_running.tuners import Ended

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_LOST_AFTER = 1.0
"""CPU seconds after which a run that has been sent a signal has no excuse to end well."""
_IN_PYTHON = "init_import_site"
"""What Python says where it is interrupted before it runs a program at all."""


@dataclass(frozen=True)
class Case:
    """A run to be killed.

    Attributes:
        number: from 1; the same number and seed is the same case.
        regime: of ``REGIMES``.
        phase: of the first kill.
        signal: of the first kill.
        chance: draws all that follows.
    """

    number: int
    regime: str
    phase: str
    signal: signal.Signals
    chance: random.Random

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.number} ({self.regime}; {self.phase}; {self.signal.name})"


@dataclass
class Outcome:
    """What came of a case.

    Attributes:
        case: which.
        kills: how each kill was meant, and how the run ended.
        problems: all that is wrong; empty for a success.
        met: whether the first kill met the run before its end.
        slowest: seconds until the last process was gone.
    """

    case: Case
    kills: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    met: bool = False
    slowest: float = 0.0


def judge(
    ended: Ended, number: signal.Signals, work: Path, outcome: Outcome, *, is_tuned: bool
) -> None:
    """Whether a run that was killed has ended as it should.

    Where ``is_tuned`` is False, it is no tuning run, which says how to go on.
    """
    is_begun = (work / "tuning.lock").exists()
    is_over = (work / "summary.json").exists()
    complaints = "Traceback" in ended.said or "Exception ignored" in ended.said
    if complaints and not (_IN_PYTHON in ended.said and not is_begun):
        outcome.problems.append(f"it printed a traceback:\n{ended.said.strip()[-3000:]}")
    if not ended.code and ended.went_on > _LOST_AFTER:
        outcome.problems.append(f"{number.name} was lost: the run went on to its end")
    if number == signal.SIGKILL:
        allowed = {0, -signal.SIGKILL, -signal.SIGALRM}
    else:
        allowed = {0, 128 + number}
        if is_over or not is_begun or not is_tuned:
            allowed |= {-number, -signal.SIGALRM, 1 if _IN_PYTHON in ended.said else 0}
    if ended.code not in allowed:
        problem = f"after {number.name} it ended with {ended.code}: {ended.said.strip()[-1000:]}"
        outcome.problems.append(problem)
    # While its modules are loaded, a run that goes on has done nothing yet itself.
    loading = ended.said.strip().partition(": ")[2] in {"interrupted.", "ended by SIGTERM."}
    in_the_middle = is_begun and not is_over and not loading
    if is_tuned and ended.code == 128 + number and in_the_middle and "--continue" not in ended.said:
        outcome.problems.append(f"it did not say how to go on: {ended.said.strip()[-1000:]}")


def table(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as Markdown: for each signal runs, and how many of them failed."""
    cells: dict[tuple[str, str], Counter[str]] = {}
    for outcome in outcomes:
        case = outcome.case
        cell = cells.setdefault((case.regime, case.phase), Counter())
        cell[case.signal.name] += 1
        cell["runs"] += 1
        cell["identical"] += not outcome.problems
        cell["failed"] += bool(outcome.problems)
        cell["kills"] += len(outcome.kills)
    columns = (*(number.name for number in SIGNALS), "runs", "kills", "identical", "failed")
    lines = [
        f"| regime | phase | {' | '.join(columns)} |",
        f"|---|---|{'---|' * len(columns)}",
    ]
    for (regime, phase), cell in sorted(cells.items()):
        numbers = " | ".join(str(cell[name]) for name in columns)
        lines.append(f"| {regime} | {phase} | {numbers} |")
    total = sum(cells.values(), Counter())
    numbers = " | ".join(f"**{total[name]}**" for name in columns)
    lines.append(f"| **all** | | {numbers} |")
    met = sum(outcome.met for outcome in outcomes)
    slowest = max((outcome.slowest for outcome in outcomes), default=0.0)
    lines += [
        "",
        f"{met} of {len(outcomes)} first kills met the run before its end;"
        f" the last child process was gone {slowest:.2f} s after its run at the latest.",
    ]
    return "\n".join(lines)
