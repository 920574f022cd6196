"""Tune, translate the test sets, and keep the result of each run.

A run is a directory ``SYSTEM.SEED``; ``result.json`` in it is written last, so an interrupted
comparison is continued by the same command, and the table is made from all results that are there.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import sacrebleu
from numpy.typing import NDArray

from mosesplug.cli.moses.install import write_launchers
from tests.benchmarks.truth.systems import Task, TuningSystem

RESULT = "result.json"


@dataclass(frozen=True)
class TestSet:
    """Text to judge by."""

    name: str
    source: Path
    reference: Path

    __test__ = False


@dataclass(frozen=True)
class Result:
    """What one run came to.

    Attributes:
        system, seed: the run.
        wall, cpu: seconds of the whole tuning command and all of its processes.
        iterations: decodings of the tuning set.
        bleu: of each test set, sacrebleu's corpus BLEU without tokenization, 0 to 100.
    """

    system: str
    seed: int
    wall: float
    cpu: float
    iterations: int
    bleu: dict[str, float]


def prepare_task(
    out: Path,
    data: Path,
    moses: Path,
    *,
    flags: str,
    threads: int,
    sentences: int | None,
    fold: int | None,
) -> tuple[Task, list[TestSet]]:
    """Write the decoder's configuration and the texts of a comparison.

    With ``fold`` 0 or 1, one random half of the tuning set is tuned on and the other half is the
    one test set: for choices, which may not look at the real ones. (The odd sentences are a third
    longer than the even ones.)

    Raises:
        SystemExit: ``out`` was made with other options.
    """
    out.mkdir(parents=True, exist_ok=True)
    _check_same(out, {"flags": flags, "threads": threads, "sentences": sentences, "fold": fold})
    ini = re.sub(
        r"\bpath=(?!/)", f"path={data / 'model'}/", (data / "model" / "moses.ini").read_text()
    )
    (out / "moses.ini").write_text(ini)
    tools = out / "tools"
    if not tools.exists():
        write_launchers(out / "launchers")
        tools.mkdir()
        for program in (moses / "bin").iterdir():
            (tools / program.name).symlink_to(program)
        (tools / "megam_i686.opt").symlink_to(out / "launchers" / "megam_i686.opt")
    text = data / "text"
    judged = [
        TestSet(name, text / f"{name}.de", text / f"{name}.en") for name in ("test2016", "test2017")
    ]
    lines = {side: (text / f"dev.{side}").read_text().splitlines() for side in ("de", "en")}
    tuned = dict(lines)
    if fold is not None:
        order = np.random.default_rng(0).permutation(len(lines["de"]))
        tuned = {side: _take(part, order[fold::2]) for side, part in lines.items()}
        rest = {side: _take(part, order[1 - fold :: 2]) for side, part in lines.items()}
        judged = [TestSet("other-half", *_write_text(out, "other-half", rest))]
    tuned = {side: part[:sentences] for side, part in tuned.items()}
    source, reference = _write_text(out, "tune", tuned)
    return Task(source, reference, out / "moses.ini", moses, tools, flags, threads), judged


def _take(lines: list[str], chosen: NDArray[np.int64]) -> list[str]:
    return [lines[number] for number in sorted(chosen.tolist())]


def _write_text(out: Path, name: str, lines: dict[str, list[str]]) -> tuple[Path, Path]:
    paths = out / f"{name}.de", out / f"{name}.en"
    for path, side in zip(paths, ("de", "en"), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines[side]))
    return paths


def _check_same(out: Path, options: dict[str, object]) -> None:
    record = out / "options.json"
    if record.exists() and json.loads(record.read_text()) != options:
        raise SystemExit(f"{record}: made with other options. Choose another --out.")
    record.write_text(json.dumps(options))


def run_system(
    system: TuningSystem, seed: int, task: Task, judged: list[TestSet], out: Path
) -> Result:
    """Tune once and judge the result; return at once what an earlier call finished.

    Raises:
        SystemExit: the tuning command or the decoder failed, or the earlier call had another
            command.
    """
    directory = out / f"{system.name}.{seed}"
    finished, work = directory / RESULT, directory / "work"
    command = system.command(task, seed, work)
    text, record = " ".join(command) + "\n", directory / "command.txt"
    if finished.exists():
        if record.read_text() != text:
            raise SystemExit(f"{record}: another command. Choose another name or --out.")
        return Result(**json.loads(finished.read_text()))
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    record.write_text(text)
    start = time.perf_counter()
    if command:
        cpu = _run(command, directory)
    else:
        work.mkdir()
        shutil.copy(task.ini, work)
        cpu = 0.0
    wall = time.perf_counter() - start
    bleu = {
        test.name: _judge(task, work / "moses.ini", test, directory / f"{test.name}.out")
        for test in judged
    }
    iterations = len(
        [path for path in work.iterdir() if re.fullmatch(r"run\d+\.moses\.ini", path.name)]
    )
    result = Result(system.name, seed, wall, cpu, iterations, bleu)
    _compress(work)
    finished.write_text(json.dumps(asdict(result), indent=1) + "\n")
    return result


def _run(command: list[str], directory: Path) -> float:
    """Run a command to its end, with its output in ``log``; return CPU seconds of its tree."""
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{directory / 'log'}: the command ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def _judge(task: Task, ini: Path, test: TestSet, translation: Path) -> float:
    """Translate a test set with tuned weights and score it with sacrebleu."""
    command = [str(task.moses / "bin" / "moses"), "-f", str(ini)]
    command += ["-threads", str(task.threads), *task.flags.split()]
    with test.source.open("rb") as source, translation.open("wb") as target:
        subprocess.run(command, stdin=source, stdout=target, stderr=subprocess.DEVNULL, check=True)
    hypotheses = [line.rstrip() for line in translation.read_text().splitlines()]
    references = test.reference.read_text().splitlines()
    return sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True).score


def _compress(work: Path) -> None:
    """Remove the large files of a finished run, which the table does not need."""
    for path in work.iterdir():
        if path.name.endswith((".dat", ".out.gz", ".pro.data")):
            path.unlink()
        elif path.name == "nbest.lmdb" or path.suffix == ".lmdb":
            shutil.rmtree(path)
    for log in work.parent.glob("log"):
        with gzip.open(f"{log}.gz", "wb") as packed:
            packed.write(log.read_bytes())
        log.unlink()


def read_results(out: Path) -> list[Result]:
    """Return all finished runs below ``out``, by system and seed."""
    found = [Result(**json.loads(path.read_text())) for path in out.glob(f"*/{RESULT}")]
    return sorted(found, key=lambda result: (result.system, result.seed))
