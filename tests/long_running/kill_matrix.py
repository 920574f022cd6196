"""Kills tuning runs at drawn points, resumes them, and compares what they leave with a whole run.

usage: python -m tests.long_running.kill_matrix [--runs 200] [--seed 1] [--jobs 2] [--regimes A,B]
           [--toy] [--keep DIR]

Every regime (``system.REGIMES``) is first run undisturbed, while the events of its phases are
counted (``injection``). Then each kill draws a regime, a phase, an event in it and a signal
(SIGKILL, SIGTERM, SIGINT); a part of the runs is started as a program of its own, and killed from
outside at a random time, its first moments included. A run that was killed is resumed with
``--continue``, and in one case of three killed again, and again. Then

- where a run is to replace an earlier one and was killed before it did, that one must be there and
  can be continued; the run is started once more then, instead of being continued;
- what the working directory holds must be the same as after the undisturbed run, byte for byte
  (``left_behind`` says what is left out);
- after SIGINT the exit code is 130, after SIGTERM 143, and the message says how to go on, where a
  run has begun and is not over; before and after that it may also end by the signal itself; no
  traceback is ever printed, but where Python itself was still starting;
- ``nbest verify`` finds no fault in any store;
- no process that the run has started lives on.

Prints a table of regimes, phases and signals, and what failed; exit code 1 if anything did. The
same seed draws the same points; where threads are at work, their order is the system's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mosesplug.errors import StoreError
from mosesplug.store import NBestStore
from tests.long_running.injection import Plan
from tests.long_running.kills import SIGNALS, Case, Outcome, judge, table
from tests.long_running.left_behind import differences, left_in
from tests.long_running.processes import VARIABLE, left_after
from tests.long_running.system import (
    EARLIER,
    MAINTAINED,
    MAINTENANCE,
    REGIMES,
    ROOT,
    SEQUENCES,
    SERVED,
    System,
    make_demo,
    make_toy,
)
from tests.long_running.tuners import Ended, Tuners

OUTSIDE = "any time, from outside"
PROGRAM = "import sys; from tests.long_running.steps import run; run(sys.argv[1:])"

_FROM_OUTSIDE = 0.15
_EARLIER_SEED = 4
"""The seed of a run that another one replaces, which distinguishes the two."""
_KILLED_AGAIN = 0.33
_LATER = {"commit": (0.6, 0.004), "decoding": (0.5, 0.3), "held-out text": (0.5, 0.3)}
"""Phases in which the timer is used more than elsewhere: how often, and seconds at most."""
_LATER_ELSEWHERE = (0.1, 0.05)
_PATIENCE = 60.0
"""Seconds after which a process that is still there was left behind."""


@dataclass(frozen=True)
class Whole:
    """An undisturbed run.

    Attributes:
        left: what it left.
        counts: its events by phase.
        operations: the events that are calls of built-in functions, by phase.
        seconds: that it took.
        earlier: directory of the run that it replaced, or None.
    """

    left: Mapping[str, Any]
    counts: Mapping[str, int]
    operations: Mapping[str, Sequence[int]]
    seconds: float
    earlier: Path | None = None


def main() -> None:
    """Run the matrix and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--regimes", default=None)
    parser.add_argument("--toy", action="store_true", help="the toy decoder, where it can serve")
    parser.add_argument("--case", type=int, default=None, help="only this one, as it was drawn")
    parser.add_argument("--keep", type=Path, default=None, help="directory to keep failures in")
    given = parser.parse_args()
    # In the background it would be ignored, and by all programs started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = list(REGIMES) if given.regimes is None else given.regimes.split(";")
    with tempfile.TemporaryDirectory(prefix="mosesplug-kills-") as directory:
        system = (make_toy if given.toy else make_demo)(Path(directory) / "system")
        if given.toy:
            names = [name for name in names if name not in SERVED]
        outcomes = matrix(
            system,
            names,
            Path(directory),
            runs=given.runs,
            seed=given.seed,
            jobs=given.jobs,
            only=given.case,
            keep=given.keep,
            tell=lambda text: print(text, file=sys.stderr, flush=True),
        )
    print(table(outcomes))
    failed = [outcome for outcome in outcomes if outcome.problems]
    for outcome in failed:
        print(f"\nFAILED {outcome.case.name}")
        print("\n".join(f"  {line}" for line in (*outcome.kills, *outcome.problems)))
    sys.exit(1 if failed else 0)


def matrix(
    system: System,
    regimes: Sequence[str],
    directory: Path,
    *,
    runs: int,
    seed: int,
    jobs: int = 1,
    outside: float = _FROM_OUTSIDE,
    early: bool = False,
    only: int | None = None,
    keep: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[Outcome]:
    """Kill and resume so many runs.

    Args:
        system: to tune.
        regimes: names in ``REGIMES``.
        directory: for working directories.
        runs: how many.
        seed: of all draws.
        jobs: runs at once.
        outside: share of the runs that are programs of their own, killed from outside.
        early: kill in the first quarter of a phase and at once. Counts of events and times depend
            on the load of the machine, so a later kill may come after the end of the run.
        only: the number of the one case to run.
        keep: where working directories of failures are kept.
        tell: told of every outcome.
    """
    wholes: dict[str, Whole] = {}
    outcomes: list[Outcome] = []

    def record(tuners: Tuners, regime: str) -> None:
        wholes[regime] = _whole(tuners, system, regime, directory)
        tell(f"undisturbed: {regime}, {wholes[regime].seconds:.1f} s")

    def kill(tuners: Tuners, case: Case) -> None:
        outcome = _outcome(tuners, system, case, wholes[case.regime], directory, keep, early)
        outcomes.append(outcome)
        verdict = "; ".join(outcome.problems) or "identical"
        tell(f"{len(outcomes)}/{len(cases)} {case.name}: {verdict}")

    with contextlib.ExitStack() as stack:
        hosts = [stack.enter_context(Tuners()) for _ in range(jobs)]
        _at_once(hosts, regimes, record)
        cases = list(_cases(wholes, regimes, runs, seed, outside))
        if only is not None:
            cases = [case for case in cases if case.number == only]
        _at_once(hosts, cases, kill)
    return sorted(outcomes, key=lambda outcome: outcome.case.number)


Work = TypeVar("Work")


def _at_once(
    hosts: Sequence[Tuners], tasks: Sequence[Work], do: Callable[[Tuners, Work], None]
) -> None:
    """Do all tasks, each by the next host that is idle; the first error ends it."""
    idle: queue.SimpleQueue[Tuners] = queue.SimpleQueue()
    for host in hosts:
        idle.put(host)

    def work(task: Work) -> None:
        host = idle.get()
        try:
            do(host, task)
        finally:
            idle.put(host)

    with ThreadPoolExecutor(len(hosts)) as executor:
        for future in [executor.submit(work, task) for task in tasks]:
            future.result()


def _cases(
    wholes: Mapping[str, Whole], regimes: Sequence[str], runs: int, seed: int, outside: float
) -> list[Case]:
    """Cases in which all phases of all regimes come about equally often, and all signals."""
    chance = random.Random(seed)
    cells = []
    while len(cells) < runs:
        deck = [(regime, phase) for regime in regimes for phase in sorted(wholes[regime].counts)]
        n_outside = round(outside * len(deck))
        deck += [(regimes[k % len(regimes)], OUTSIDE) for k in range(n_outside)]
        chance.shuffle(deck)
        cells += deck
    return [
        Case(number, regime, phase, SIGNALS[number % 3], random.Random(f"{seed} {number}"))
        for number, (regime, phase) in enumerate(cells[:runs], start=1)
    ]


def _whole(tuners: Tuners, system: System, regime: str, directory: Path) -> Whole:
    """Run undisturbed, and count the events."""
    name = f"whole-{list(REGIMES).index(regime)}"
    work, report = directory / name, directory / f"{name}.events"
    output = directory / f"{name}.output"
    arguments = system.arguments(regime, work, resume=False)
    earlier = None
    if regime in EARLIER:
        earlier = directory / f"{name}-earlier"
        words = system.arguments(EARLIER[regime], earlier, resume=False)
        if tuners.run([*words, f"--seed={_EARLIER_SEED}"], output).code:
            raise RuntimeError(f"the run that is to be replaced ({regime}) failed")
        shutil.copytree(earlier, work)
    if regime == MAINTENANCE:
        words = system.arguments("batch", system.directory / MAINTAINED, resume=False)
        if tuners.run(words, output).code:
            raise RuntimeError("the run whose store is maintained failed")
    # In the process itself: the runs that it forks have the modules and kernels then.
    ended = tuners.run(arguments, output, report=report, here=True)
    if ended.code:
        raise RuntimeError(f"the undisturbed run ({regime}) failed with {ended.code}")
    events = json.loads(report.read_text())
    left = left_in(work)
    shutil.rmtree(work)
    return Whole(left, events["counts"], events["operations"], ended.seconds, earlier)


def _outcome(
    tuners: Tuners,
    system: System,
    case: Case,
    whole: Whole,
    directory: Path,
    keep: Path | None,
    early: bool,
) -> Outcome:
    """Kill a run, resume it until it ends, and look at what it left."""
    outcome = Outcome(case)
    work = directory / f"case-{case.number:05}"
    output = directory / f"{work.name}.output"
    token = f"{os.getpid()}-{case.number}"
    if whole.earlier is not None:
        shutil.copytree(whole.earlier, work)
    again = True
    while again:
        is_first = not outcome.kills
        arguments = system.arguments(
            case.regime, work, resume=not is_first and not _is_of_earlier(work)
        )
        if is_first and case.phase == OUTSIDE:
            ended, met = _killed_from_outside(arguments, output, token, case, whole)
            number: signal.Signals = case.signal
            outcome.kills.append(f"{number.name} from outside after {ended.seconds:.2f} s")
        else:
            number = case.signal if is_first else case.chance.choice(SIGNALS)
            phase = case.phase if is_first else case.chance.choice(sorted(whole.counts))
            plan = _plan(case.chance, whole, phase, number, early)
            ended = tuners.run(arguments, output, token=token, plan=plan)
            met = ended.code != 0 or ended.went_on > 0
            delay = f" and {plan.delay * 1000:.1f} ms" if plan.delay else ""
            outcome.kills.append(f"{number.name} in {phase}, event {plan.number}{delay}")
        outcome.kills[-1] += f": exit code {ended.code}"
        if is_first:
            outcome.met = met
        judge(ended, number, work, outcome, is_tuned=case.regime not in SEQUENCES)
        _look_for_processes(token, outcome)
        again = met and case.chance.random() < _KILLED_AGAIN and len(outcome.kills) < 4
    if _is_of_earlier(work):
        _continue_earlier(tuners, system, case, work, output, outcome)
    arguments = system.arguments(case.regime, work, resume=not _is_of_earlier(work))
    ended = tuners.run(arguments, output, token=token)
    if ended.code:
        words = ended.said.strip()[-1000:]
        outcome.problems.append(f"resumed, it ended with {ended.code}: {words}")
    else:
        outcome.problems += differences(whole.left, left_in(work))
        _verify(tuners, work, output, outcome)
    _look_for_processes(token, outcome)
    if outcome.problems and keep is not None:
        shutil.copytree(work, keep / work.name, dirs_exist_ok=True)
    shutil.rmtree(work, ignore_errors=True)
    output.unlink()
    return outcome


def _is_of_earlier(work: Path) -> bool:
    """Whether what a directory holds is still the run that is to be replaced."""
    try:
        with NBestStore.open(work / "nbests.lmdb") as store:
            records = store.iterations()
    except StoreError:  # the store is missing or incomplete
        return False
    return bool(records) and records[0].record["seed"] == _EARLIER_SEED


def _continue_earlier(
    tuners: Tuners, system: System, case: Case, work: Path, output: Path, outcome: Outcome
) -> None:
    """See that the run that was not replaced after all can be continued, in a copy."""
    copied = work.with_name(f"{work.name}-earlier")
    shutil.copytree(work, copied)
    words = system.arguments(EARLIER[case.regime], copied, resume=True)
    ended = tuners.run([*words, f"--seed={_EARLIER_SEED}"], output)
    if ended.code or not (copied / "moses.ini").exists():
        outcome.problems.append(f"the earlier run is lost: {ended.said.strip()[-1000:]}")
    shutil.rmtree(copied)


def _plan(chance: random.Random, whole: Whole, phase: str, number: int, early: bool) -> Plan:
    """An event of a phase: of all of them, or in half of the cases of the built-in functions'."""
    operations = whole.operations.get(phase, ())
    if early:
        return Plan(phase, chance.randint(1, max(1, whole.counts[phase] // 4)), int(number), 0.0)
    if operations and chance.random() < 0.5:
        event = chance.choice(operations)
    else:
        event = chance.randint(1, whole.counts[phase])
    share, longest = _LATER.get(phase, _LATER_ELSEWHERE)
    delay = chance.uniform(1e-5, longest) if chance.random() < share else 0.0
    return Plan(phase, event, int(number), delay)


def _killed_from_outside(
    arguments: list[str], output: Path, token: str, case: Case, whole: Whole
) -> tuple[Ended, bool]:
    """Start the program by itself, and send it the signal at a random time."""
    # A program of its own has to load everything: half of the times are in its first second.
    latest = 1.0 if case.chance.random() < 0.5 else whole.seconds + 2.0
    pause = case.chance.uniform(0.0, latest)
    command = [sys.executable, "-c", PROGRAM, *arguments]
    started = time.monotonic()
    with output.open("wb") as file:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=ROOT,
            env={**os.environ, VARIABLE: token},
            start_new_session=True,
        )
        try:
            child.wait(pause)
        except subprocess.TimeoutExpired:
            child.send_signal(case.signal)
        code = child.wait()
    said = output.read_text(errors="replace")
    return Ended(code, said, time.monotonic() - started), code != 0


def _verify(tuners: Tuners, work: Path, output: Path, outcome: Outcome) -> None:
    """Read every record of every store."""
    for store in sorted(work.rglob("nbests.lmdb")):
        ended = tuners.run(["nbest", "verify", "--quiet", str(store)], output)
        if ended.code:
            outcome.problems.append(f"verify: {ended.said.strip()[-1000:]}")


def _look_for_processes(token: str, outcome: Outcome) -> None:
    left, seconds = left_after(token, _PATIENCE)
    outcome.slowest = max(outcome.slowest, seconds)
    for process, command in left.items():
        outcome.problems.append(f"process {process} was left behind: {command[:200]}")
        os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
