"""Compare time and memory of the launchers with Moses' programs.

usage: python tests/benchmarks/compare_programs.py [--rounds N] [--seeds N] [--markdown]
    [--only NAME] [MOSES_BIN]

With Moses' ``bin`` folder (by default that of MOSES_HOME), both sides run in turn on this machine,
on the same files, and ratios are printed. Without one, the figures that were recorded with Moses
stand beside ours: they come from another machine, so they are a hint and not a comparison. Data are
the recordings (MOSES_RECORDINGS), or made up in the same size; search graphs are recorded only.

Figures are medians over the rounds, by ``/usr/bin/time -v`` where there is one, else by the
resource usage of the child process: the same numbers with the start of one shell less. MERT runs
once for each of ``--seeds`` seeds, and its result is the mean, the least and the best score.

The ``kbmira`` that Moses ships compares a hypothesis with itself when it removes duplicates, and so
learns from a part of the lists; on search graphs it is correct.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from mosesplug.cli.moses.install import write_launchers
from mosesplug.user_cache import clear_cache
from tests.benchmarks.synthetic import make

GNU_TIME = Path("/usr/bin/time")
LISTS = 7


@dataclass(frozen=True)
class Figures:
    """One run of one process, or the median of some.

    Attributes:
        wall, cpu: seconds; NaN where it is not known.
        peak: resident memory in MB.
    """

    wall: float
    cpu: float
    peak: float

    def __str__(self) -> str:
        return f"{self.wall:8.2f} {self.cpu:8.2f} {self.peak:7.0f}".replace("nan", "  -")


@dataclass(frozen=True)
class Data:
    """The input of the programs: n-best lists, references, and starting weights."""

    lists: list[Path]
    reference: Path
    init: Path
    dense: Path
    n_features: int


@dataclass(frozen=True)
class Task:
    """One program's job.

    Attributes:
        name: for the table.
        program: its file name.
        arguments: made for the directory of one side, and the number of the round, from 0.
        result: a word about what came out, from that directory and stderr.
        recorded: figures that were recorded with Moses, and their result.
        seeds: whether it runs once for each seed.
        before: prepares a run of the side with a name.
        stdin: the file that the program reads, or None.
    """

    name: str
    program: str
    arguments: Callable[[Path, int], list[str]]
    result: Callable[[Path, str], str]
    recorded: tuple[Figures, str] | None = None
    seeds: bool = False
    before: Callable[[str], None] = lambda _: None
    stdin: Path | None = None


@dataclass
class Side:
    """One set of programs and what they were measured at."""

    name: str
    programs: Path
    directory: Path
    figures: dict[str, list[Figures]] = field(default_factory=dict)
    results: dict[str, list[str]] = field(default_factory=dict)

    def has(self, task: Task) -> bool:
        return executable(self.programs / task.program)

    def run(self, task: Task, number: int) -> None:
        """Measure a task once."""
        task.before(self.name)
        command = [str(self.programs / task.program), *task.arguments(self.directory, number)]
        figures, said = measured(command, self.directory, task.stdin)
        self.figures.setdefault(task.name, []).append(figures)
        self.results.setdefault(task.name, []).append(task.result(self.directory, said))

    def result(self, task: Task) -> str:
        """Return the result of a task; of several seeds, the mean, the least and the best."""
        found = self.results[task.name]
        if not task.seeds:
            return found[-1]
        scores = [float(each) for each in found]
        return f"{statistics.mean(scores):.4f} ({min(scores):.4f} to {max(scores):.4f})"

    def median(self, task: Task) -> Figures:
        runs = self.figures[task.name]
        return Figures(
            *(statistics.median(getattr(run, name) for run in runs) for name in vars(runs[0]))
        )


def executable(path: Path) -> bool:
    """Whether there is such a program."""
    return path.is_file() and os.access(path, os.X_OK)


def measured(
    command: Sequence[str], directory: Path, stdin: Path | None = None
) -> tuple[Figures, str]:
    """Run a command; its figures, and its stderr."""
    report = directory / "time.txt"
    timed = [str(GNU_TIME), "-v", "-o", str(report), *command] if GNU_TIME.exists() else command
    with (
        Path(stdin or os.devnull).open("rb") as given,
        (directory / "out").open("wb") as out,
        (directory / "err").open("wb") as err,
    ):
        began = time.perf_counter()
        process = subprocess.Popen(timed, cwd=directory, stdin=given, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    said = (directory / "err").read_text(errors="replace")
    if process.returncode:
        sys.exit(f"{' '.join(command)}\nended with {process.returncode}:\n{said[-2000:]}")
    if GNU_TIME.exists():
        return reported(report.read_text()), said
    return Figures(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024), said


def reported(text: str) -> Figures:
    """The figures in a report of ``/usr/bin/time -v``."""
    fields = dict(line.strip().rsplit(": ", 1) for line in text.splitlines() if ": " in line)
    clock = fields["Elapsed (wall clock) time (h:mm:ss or m:ss)"].split(":")
    wall = sum(float(part) * 60**power for power, part in enumerate(reversed(clock)))
    cpu = float(fields["User time (seconds)"]) + float(fields["System time (seconds)"])
    return Figures(wall, cpu, float(fields["Maximum resident set size (kbytes)"]) / 1024)


def found_data(directory: Path) -> tuple[Data, str]:
    """The recorded system, or one made up; and what it is called."""
    default = Path(__file__).parents[3] / "shared" / "data"
    system = Path(os.environ.get("MOSES_RECORDINGS", default)) / "multi30k-de-en"
    work = system / "mert-work"
    if system.is_dir():
        lists = [work / f"run{number}.best100.out.gz" for number in range(1, LISTS + 1)]
        init, dense = work / f"run{LISTS}.init.opt", work / f"run{LISTS}.dense"
        return Data(lists, system / "text" / "dev.en", init, dense, 14), "recorded lists"
    lists, reference = make(directory / "lists", LISTS)
    groups = {"Lex0": 6, "Distortion0": 1, "LM0": 1, "WordPenalty0": 1, "TM0": 5}
    names = [name for name, width in groups.items() for _ in range(width)]
    init, dense = directory / "init.opt", directory / "dense"
    rows = ("0.1 " * len(names), "0 " * len(names), "1 " * len(names))
    init.write_text("".join(f"{row.strip()}\n" for row in rows))
    dense.write_text("".join(f"{name}= 0.1\n" for name in names))
    return Data(lists, reference, init, dense, len(names)), "made up lists"


def tasks(data: Data, shared: Path) -> list[Task]:
    """The measured programs; all but the extractor read the files in ``shared``."""
    features = [str(shared / f"run{number}.features.dat") for number in range(1, LISTS + 1)]
    scores = [str(shared / f"run{number}.scores.dat") for number in range(1, LISTS + 1)]
    several = [word for name in features for word in ("--ffile", name)]
    several += [word for name in scores for word in ("--scfile", name)]
    dense = ["-d", str(data.n_features), "--scconfig", "case:true"]
    merged = ["--ffile", ",".join(features), "--scfile", ",".join(scores)]
    return [
        Task(
            "extractor, 1 list",
            "extractor",
            lambda _, __: extracting(data.lists[:1], data, "features.dat", "scores.dat"),
            lambda here, _: f"{(here / 'features.dat').stat().st_size} bytes",
            (Figures(0.76, math.nan, 31), ""),
        ),
        Task(
            f"extractor, {LISTS} lists",
            "extractor",
            lambda _, __: extracting(data.lists, data, "features.dat", "scores.dat"),
            lambda here, _: f"{(here / 'features.dat').stat().st_size} bytes",
        ),
        Task(
            f"kbmira, {LISTS} lists",
            "kbmira",
            lambda _, __: ["--dense-init", str(data.dense), "-r", "1", *several, "-o", "mira.out"],
            lambda _, said: last(r"Best BLEU = (\S+)", said),
            (Figures(7.35, math.nan, 72), "0.4063"),
        ),
        Task(
            f"mert, {LISTS} lists",
            "mert",
            lambda _, number: [
                *(*dense, *merged, "--ifile", str(data.init)),
                *("-n", "20", "-r", str(7000 + number), "--threads", "2"),
            ],
            lambda _, said: last(r"Best point:.*=> (\S+)", said),
            (Figures(42.13, 82.05, 120), "0.409857"),
            seeds=True,
        ),
        Task(
            "pro, 1 list",
            "pro",
            lambda _, __: ["-r", "1000", *several[:2], "--scfile", scores[0], "-o", "pro.data"],
            lambda here, _: f"{(here / 'pro.data').read_bytes().count(10)} examples",
        ),
        Task(
            "classifier, 1 list",
            "megam_i686.opt",
            lambda _, __: ["-fvals", "-maxi", "30", "-nobias", "binary", "pro.data"],
            lambda here, _: f"{(here / 'out').read_bytes().count(10)} weights",
        ),
        Task(
            "sentence-bleu",
            "sentence-bleu",
            lambda _, __: [str(data.reference)],
            lambda here, _: f"{(here / 'out').read_bytes().count(10)} scores",
            stdin=data.reference,
        ),
        *graph_tasks(data, shared),
    ]


def graph_tasks(data: Data, shared: Path) -> list[Task]:
    """The programs that read search graphs; none without recorded ones."""
    recorded = data.lists[0].parents[1] / "forest"
    if not (recorded / "hypergraph").is_dir():
        return []
    graphs, reference = shared / "hypergraph", shared / "first.ref"
    shutil.copytree(recorded / "hypergraph", graphs, copy_function=shutil.copyfile)
    count = sum(path.suffix == ".gz" for path in graphs.iterdir())
    lines = data.reference.read_bytes().splitlines(keepends=True)
    reference.write_bytes(b"".join(lines[:count]))
    learning = ["--type", "hypergraph", "--hgdir", str(graphs), "--reference", str(reference)]
    learning += ["--dense-init", str(recorded / "init.dense"), "--no-shuffle", "-J", "3", "-r", "1"]

    def forget(side: str) -> None:
        if side == "ours":
            clear_cache()

    def find_result(_: Path, said: str) -> str:
        return last(r"Best BLEU = (\S+)", said)

    return [
        Task(
            f"kbmira, {count} graphs",
            "kbmira",
            lambda _, __: [*learning, "-o", "mira.out"],
            find_result,
            before=forget,
        ),
        Task(
            f"kbmira, {count} graphs again",
            "kbmira",
            lambda _, __: [*learning, "-o", "mira.out"],
            find_result,
        ),
        Task(
            "hgdecode, 1 graph",
            "hgdecode",
            lambda _, __: [
                *("--hypergraph", str(graphs / "1.gz")),
                *("-d", str(recorded / "init.dense")),
            ],
            lambda here, _: f"{len((here / 'out').read_bytes().split())} words",
        ),
    ]


def extracting(lists: Sequence[Path], data: Data, features: str, scores: str) -> list[str]:
    """Arguments of the extractor for some lists."""
    return [
        *("--sctype", "BLEU", "--scconfig", "case:true", "-r", str(data.reference)),
        *("-n", ",".join(map(str, lists)), "--ffile", features, "--scfile", scores),
    ]


def last(pattern: str, text: str) -> str:
    """Return the last match of the pattern's group."""
    found = re.findall(pattern, text)
    return str(found[-1]).rstrip(",;") if found else "?"


def compare(sides: Sequence[Side], jobs: Sequence[Task], rounds: int, seeds: int) -> None:
    """Run and print."""
    print(f"{'':24s} {'':8s} {'wall s':>8s} {'CPU s':>8s} {'MB':>7s}  result")
    for task in jobs:
        able = [side for side in sides if side.has(task)]
        for number in range(seeds if task.seeds else rounds):
            for side in able:
                side.run(task, number)
        for side in able:
            print(f"{task.name:24s} {side.name:8s} {side.median(task)}  {side.result(task)}")
        if len(able) == 2:
            ours, theirs = (side.median(task) for side in able)
            ratios = Figures(
                ours.wall / theirs.wall, ours.cpu / theirs.cpu, ours.peak / theirs.peak
            )
            print(f"{'':24s} {'ratio':8s} {ratios.wall:8.3f} {ratios.cpu:8.3f} {ratios.peak:7.2f}")
        elif len(sides) == 1 and task.recorded is not None:
            figures, result = task.recorded
            print(f"{'':24s} {'recorded':8s} {figures}  {result}")
        elif len(sides) == 2:
            missing = next(side for side in sides if side not in able)
            print(f"{'':24s} {missing.programs} has no {task.program}")


def format_markdown(sides: Sequence[Side], jobs: Sequence[Task]) -> str:
    """Return the figures of both sides as a table of the manual."""
    rows = ["| program | CPU s here | of Moses | wall s here | of Moses | result here | of Moses |"]
    rows.append("|---" * 7 + "|")
    for task in jobs:
        known = [side if side.has(task) else None for side in sides]
        figures = [None if side is None else side.median(task) for side in known]
        cells = [task.name]
        cells += ["" if each is None else f"{each.cpu:.2f}" for each in figures]
        cells += ["" if each is None else f"{each.wall:.2f}" for each in figures]
        cells += ["" if side is None else side.result(task) for side in known]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def find_moses() -> Path | None:
    """Return the ``bin`` folder of MOSES_HOME; None without one."""
    home = os.environ.get("MOSES_HOME", str(Path(__file__).parents[3] / "shared" / "moses"))
    found = Path(home, "bin")
    return found if executable(found / "extractor") else None


def main() -> None:
    """Read the command line, make the files, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("moses_bin", nargs="?", type=Path, help="Moses' bin folder [MOSES_HOME's]")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program [3]")
    parser.add_argument("--seeds", type=int, default=10, help="runs of mert [10]")
    parser.add_argument("--only", default="", help="beginnings of names, with commas [all]")
    parser.add_argument("--markdown", action="store_true", help="print a table of the manual, too")
    given = parser.parse_args()
    moses = find_moses() if given.moses_bin is None else given.moses_bin
    if given.moses_bin is not None and not executable(given.moses_bin / "extractor"):
        parser.error(f"{given.moses_bin} has no extractor: name the bin folder of a Moses build")
    with tempfile.TemporaryDirectory(prefix="mosesplug-compare-") as name:
        directory = Path(name)
        os.environ["MOSESPLUG_CACHE_DIR"] = str(directory / "cache")
        write_launchers(directory / "tools")
        sides = [Side("ours", directory / "tools", directory / "ours")]
        if moses is not None:
            sides.append(Side("Moses", moses.absolute(), directory / "moses"))
        for side in sides:
            side.directory.mkdir()
        data, what = found_data(directory)
        shared = directory / "extracted"
        shared.mkdir()
        for number in range(LISTS):
            # Also compiles the kernels, where they are not cached yet.
            files = f"run{number + 1}.features.dat", f"run{number + 1}.scores.dat"
            command = [
                str(sides[0].programs / "extractor"),
                *extracting([data.lists[number]], data, *files),
            ]
            measured(command, shared)
        print(f"{what}; median of {given.rounds} rounds; {os.cpu_count()} processors")
        wanted = tuple(given.only.split(","))
        jobs = [task for task in tasks(data, shared) if task.name.startswith(wanted)]
        compare(sides, jobs, given.rounds, given.seeds)
        if given.markdown and len(sides) == 2:
            print(f"\n{format_markdown(sides, jobs)}")


if __name__ == "__main__":
    main()
