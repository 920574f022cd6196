"""Compare the speed and the memory of two commits by ratios.

``python -m tests.benchmarks.compare_commits BASE [HEAD] [--only NAME]... [--pairs N]`` checks
both commits out in temporary directories and runs each benchmark with both in turn, in this
Python's environment. HEAD is the working tree unless it is named. It prints the ratios of CPU
seconds (below 1: HEAD is faster) and of peak memory with their standard errors, and exits with 1
where HEAD is above ``--factor`` by more than the noise. A ratio holds on any machine, a time on
none. Peak memory is the most that one process of a command held, with the pages of files.

Every run is a whole process on made-up lists or on a part of the demo. Cold runs have an empty
cache of compiled code; before warm ones, a run that does not count fills it. The working tree is
copied without the compiled code that lies beside its modules, as a clone has none either.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.bench_startup import COMMANDS, copy_source, lay_out

ROOT = Path(__file__).parents[2]
PROGRAM = "from mosesplug.cli.main import main; main()"
DECODER = f"""\
#!/bin/sh
exec {shlex.quote(sys.executable)} -P -c '
try:
    from mosesplug.extras.phrase_decoder.program import main
except ImportError:  # an older commit
    from mosesplug.cli.moses.decoder import main
main()' "$@"
"""
STUDENT = (math.inf, math.inf, 6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86)
"""One-sided limits of Student's t at 5 %, by the number of pairs; beyond them, 1.8."""

STARTS = {name: command for name, command in COMMANDS.items() if name != "nbest import"}
MANY = "mosesplug optimize --nbest many --refs many.refs --threads 1 --seed 1"
BENCHMARKS = {
    **{f"{name}, {cache}": STARTS[name] for cache in ("cold", "warm") for name in STARTS},
    "ingest": "mosesplug nbest import many {out}/store --refs many.refs",
    "extractor, many": "tools/extractor -r many.refs -n many --scfile {out}/s --ffile {out}/f",
    "optimize many, mert": f"{MANY} --algorithm mert --option restarts=3 --option polish=0",
    "optimize many, kbmira": f"{MANY} --algorithm kbmira",
    "optimize many, pro": f"{MANY} --algorithm pro",
    "optimize many, mira": f"{MANY} --algorithm mira",
    "search graphs": "mosesplug forest info graphs",
    "score many": "mosesplug score many.output many.refs",
    "extractor, several lists": (
        "tools/extractor -r many.refs -n many,later --scfile {out}/s --ffile {out}/f"
    ),
    "kbmira, search graphs": (
        "tools/kbmira --type hypergraph --hgdir graphs --reference demo/refs"
        " --dense-init demo/dense --random-seed 1 --iters 5 -o {out}/weights"
    ),
    "optimize search graphs, mert": (
        "mosesplug optimize --graphs graphs --refs demo/refs --threads 1 --seed 1"
        " --algorithm mert --option restarts=0 --option polish=0"
    ),
    "tune the demo": (
        "mosesplug tune demo/source demo/refs demo/decoder demo/moses.ini --working-dir {out}/work"
        " --nbest 50 --max-iterations 2 --threads 1 --decoder-flags '-threads 1' --seed 1"
    ),
}
"""A command for each name; ``{out}`` is a new directory in each run."""


@dataclass(frozen=True)
class Ratio:
    """Ratios of pairs of runs, head by base.

    Attributes:
        mean: their geometric mean.
        error: standard error of its logarithm; infinite for a single pair.
        pairs: number of pairs.
    """

    mean: float
    error: float
    pairs: int

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]]) -> Ratio:
        """Summarize CPU seconds of base and head in each pair."""
        logarithms = [math.log(head / base) for base, head in pairs]
        error = math.inf
        if len(pairs) > 1:
            error = statistics.stdev(logarithms) / math.sqrt(len(pairs))
        return cls(math.exp(statistics.fmean(logarithms)), error, len(pairs))

    def is_above(self, factor: float) -> bool:
        """Return whether the ratio is above ``factor`` by more than the noise, at 5 %."""
        limit = STUDENT[self.pairs] if self.pairs < len(STUDENT) else 1.8
        return self.pairs > 1 and math.log(self.mean / factor) > limit * self.error

    def __str__(self) -> str:
        if math.isinf(self.error):
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} ± {self.mean * self.error:.2f}"


@dataclass(frozen=True)
class Usage:
    """CPU seconds of a command, and the peak memory of one of its processes in kB."""

    seconds: float
    memory: float


@dataclass(frozen=True)
class Comparison:
    """Ratios of time and memory of a benchmark, head by base."""

    seconds: Ratio
    memory: Ratio

    @classmethod
    def of(cls, pairs: Sequence[tuple[Usage, Usage]]) -> Comparison:
        """Summarize what base and head used in each pair."""
        return cls(
            Ratio.of([(base.seconds, head.seconds) for base, head in pairs]),
            Ratio.of([(base.memory, head.memory) for base, head in pairs]),
        )

    def judge(self, factor: float) -> str:
        """Return what became worse by more than a factor, or an empty text."""
        problems = {"slower": self.seconds, "more memory": self.memory}
        return ", ".join(name for name, ratio in problems.items() if ratio.is_above(factor))


def select(parts: Sequence[str] | None) -> list[str]:
    """Return the benchmarks whose names contain one of the given parts, all for None.

    Raises:
        SystemExit: a part is in no name.
    """
    if parts is None:
        return list(BENCHMARKS)
    for part in parts:
        if not any(part in name for name in BENCHMARKS):
            raise SystemExit(f"no benchmark has {part!r} in its name: {'; '.join(BENCHMARKS)}")
    return [name for name in BENCHMARKS if any(part in name for part in parts)]


def check_out(commit: str, directory: Path) -> Path:
    """Check a commit out in a new directory, without a trace in the repository."""
    for words in (
        ["clone", "--quiet", "--shared", "--no-checkout", str(ROOT), str(directory)],
        ["-C", str(directory), "checkout", "--quiet", "--detach", _find_commit(commit)],
    ):
        subprocess.run(["git", *words], check=True)
    return directory


def _find_commit(name: str) -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: not a commit of {ROOT}")
    return done.stdout.strip()


def prepare(directory: Path, names: Iterable[str]) -> None:
    """Write what the commands of these benchmarks read."""
    directory.mkdir()
    lay_out(directory)
    commands = " ".join(BENCHMARKS[name] for name in names)
    if "tools/mert" in commands or "tools/kbmira" in commands:
        _run_or_exit(shlex.split(COMMANDS["extractor"]), directory)
    if "nbest ls" in commands or "nbest show" in commands:
        _, *words = shlex.split(COMMANDS["nbest import"])
        _run_or_exit([sys.executable, "-c", PROGRAM, *words], directory)
    if "many" in commands:
        _write_many(directory)
    if "demo/" in commands or "graphs" in commands:
        _write_demo(directory)
    if "graphs" in commands:
        _write_graphs(directory)


def _write_many(directory: Path, copies: int = 25) -> None:
    """Write the lists some times, with other sentence ids and other texts, so that all differ.

    Half of the hypotheses of the later lists are those of the first ones.
    """
    lines = (directory / "list").read_text().splitlines()
    references = (directory / "refs").read_text().splitlines()
    with (directory / "many").open("w") as first, (directory / "later").open("w") as later:
        for copy in range(copies):
            for place, line in enumerate(lines):
                sentence, text, rest = line.split(" ||| ", 2)
                number = int(sentence) + copy * len(references)
                start = f"{number} ||| {text.strip()} copy{copy}"
                first.write(f"{start} ||| {rest}\n")
                later.write(f"{start}{' later' * (place % 2)} ||| {rest}\n")
    every = [f"{line} copy{copy}\n" for copy in range(copies) for line in references]
    (directory / "many.refs").write_text("".join(every))
    (directory / "many.output").write_text("".join(line.split(" ", 1)[1] for line in every))


def _write_demo(directory: Path, n_sentences: int = 30) -> None:
    """Write a part of the demo, its weights as ``kbmira`` reads them, and the bundled decoder."""
    demo = directory / "demo"
    shutil.copytree(ROOT / "moses-config" / "demo", demo)
    for name, whole in (("source", "tune.tarvian"), ("refs", "tune.english")):
        lines = (demo / whole).read_text().splitlines(keepends=True)
        (demo / name).write_text("".join(lines[:n_sentences]))
    weights = (demo / "moses.ini").read_text().partition("[weight]\n")[2]
    (demo / "dense").write_text(weights)
    (demo / "decoder").write_text(DECODER)
    (demo / "decoder").chmod(0o755)


def _write_graphs(directory: Path) -> None:
    """Decode the part of the demo with the bundled decoder, and write its search graphs."""
    words = "demo/decoder -config demo/moses.ini -input-file demo/source"
    words += " -output-search-graph-hypergraph true txt graphs"
    _run_or_exit(words.split(), directory)


def _run_or_exit(command: list[str], directory: Path) -> None:
    """Run a command that writes what others read."""
    _, code = _run(command, directory, ROOT, directory / "kernels")
    if code:
        raise SystemExit(f"exit code {code} of {shlex.join(command)}")


WATCH = """
import os, sys
actions = [(os.POSIX_SPAWN_DUP2, 2, 1)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""
"""Runs a command, and prints its exit code, CPU seconds and peak memory.

A new process inherits the peak of the one that starts it, so this program imports little.
"""


def _run(command: list[str], directory: Path, checkout: Path, cache: Path) -> tuple[Usage, int]:
    """Run a command with the source of a checkout; return what it used and its exit code."""
    done = subprocess.run(
        [sys.executable, "-IS", "-c", WATCH, *command],
        cwd=directory,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(checkout)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:  # there is no such program
        return Usage(math.nan, math.nan), 127
    code, seconds, memory = done.stdout.split()
    return Usage(float(seconds), float(memory)), int(code)


def measure(name: str, checkouts: Sequence[Path], directory: Path, pairs: int) -> Comparison | None:
    """Run a benchmark with base and head in turn, and compare what they used.

    None is returned if the command fails in the base, which may not have it yet.

    Raises:
        SystemExit: it fails in the head.
    """
    is_cold = name.endswith(", cold")
    expected = int("refusal" in name)
    with tempfile.TemporaryDirectory(dir=directory) as temporary:

        def run(side: int, number: int) -> tuple[Usage, int]:
            out = Path(temporary) / f"{side}.{number}"
            out.mkdir()
            cache = out / "kernels" if is_cold else Path(temporary) / f"kernels{side}"
            words = [word.replace("{out}", str(out)) for word in shlex.split(BENCHMARKS[name])]
            if words[0] == "mosesplug":
                words = [sys.executable, "-c", PROGRAM, *words[1:]]
            return _run(words, directory, checkouts[side], cache)

        # Also for cold runs: it reads the files of both for the first time, and shows what fails.
        first = [run(side, -1)[1] for side in (0, 1)]
        if first[1] != expected:
            raise SystemExit(f"{name}: exit code {first[1]} of {BENCHMARKS[name]}")
        if first[0] != expected:
            return None
        used = []
        for number in range(pairs):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            found = {side: run(side, number)[0] for side in order}
            used.append((found[0], found[1]))
    return Comparison.of(used)


def compare(
    names: Sequence[str],
    measured: Callable[[str], Comparison | None],
    factor: float,
) -> list[str]:
    """Print a table of benchmarks; return the names of those that became worse."""
    print("| benchmark | CPU seconds, head by base | memory, head by base | |\n|---|---|---|---|")
    worse = []
    for name in names:
        found = measured(name)
        if found is None:
            print(f"| {name} | not in base | | |", flush=True)
            continue
        verdict = found.judge(factor)
        if verdict:
            worse.append(name)
        print(f"| {name} | {found.seconds} | {found.memory} | {verdict} |", flush=True)
    return worse


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare two commits; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", help="a commit")
    parser.add_argument("head", nargs="?", help="a commit; the working tree if left out")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="a part of names of benchmarks; repeatable"
    )
    parser.add_argument("--pairs", type=int, default=5, help="runs of each commit [default: 5]")
    parser.add_argument("--factor", type=float, default=1.1, help="allowed ratio [default: 1.1]")
    given = parser.parse_args(arguments)
    names = select(given.only)
    with tempfile.TemporaryDirectory(prefix="mosesplug-commits-") as temporary:
        directory = Path(temporary)
        base = check_out(given.base, directory / "base")
        if given.head:
            head = check_out(given.head, directory / "head")
        else:
            head = copy_source(ROOT, directory / "head")
        prepare(directory / "data", names)
        worse = compare(
            names,
            lambda name: measure(name, (base, head), directory / "data", given.pairs),
            given.factor,
        )
    if worse:
        print(f"worse by more than a factor of {given.factor:g}: {'; '.join(worse)}")
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
