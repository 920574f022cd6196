"""Finish one run of an experiment: tune, then translate the test sets.

Files in the directory of a run::

    run.json          settings and files that the results depend on; others are an error
    cost.json         CPU and wall time of the tuning so far, while it is not finished
    work/             the working directory of the tuning program
    tuned.json        written last when the tuning is finished
    tests/NAME.out    the translations of a test set
    tests/NAME.json   written last when a test set is translated

Each step that has its last file is finished and is not run again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from formats.text import write_atomic
from formats.weights.any_format import read_weights
from mosesplug.decoders.processes.run import run_command
from mosesplug.errors import DataError
from mosesplug.events import EpochLearned, Event, IterationFinished, Watcher, ignore_event
from mosesplug.experiments.planning import PlannedRun
from mosesplug.experiments.texts import SharedText
from mosesplug.tuning.decode_result import translate_text
from mosesplug.tuning.loop import tune
from mosesplug.tuning.workdir.iteration_files import result_path
from mosesplug.tuning.workdir.lock import lock_directory
from mosesplug.tuning.workdir.workspace import Workspace

_ONE_AT_A_TIME = threading.Lock()
"""CPU time is that of this process and its children, so a process finishes one run at a time."""

_LISTS = re.compile(r".*(\.dat|\.out\.gz|\.pro\.data)|.*\.lmdb|hypergraph|shard\.\d+")
"""Lists, graphs and stores of a working directory: large, and not part of the result."""

_DECODING = re.compile(r"run\d+\.moses\.ini")
"""A file that ``mert-moses.pl`` writes for each decoding."""


@dataclass(frozen=True)
class TuningRecord:
    """The cost of a finished tuning, and the size of its result.

    Attributes:
        cpu, wall: seconds of the tuning and of all programs that it ran.
        interruptions: how often it was killed and continued. The time since the last finished
            iteration before a kill is not part of ``cpu`` and ``wall``.
        decodings: how often the tuning set was decoded; None if that is unknown.
        active: number of weights of the result that are not 0.
    """

    cpu: float
    wall: float
    interruptions: int
    decodings: int | None
    active: int


def read_record(run: PlannedRun) -> TuningRecord | None:
    """Return the record of a run; None if its tuning is not finished."""
    path = run.directory / "tuned.json"
    return TuningRecord(**_read_json(path)) if path.is_file() else None


def is_translated(run: PlannedRun, test: SharedText) -> bool:
    """Return whether a run has translated a test set."""
    path = translation_path(run, test).with_suffix(".json")
    return path.is_file() and _read_json(path)["input"] == test.digest


def read_test_cpu(run: PlannedRun) -> float | None:
    """Return the CPU seconds in which a run translated its tests; None if unknown."""
    total = 0.0
    for test in run.tests:
        seconds = _read_json(translation_path(run, test).with_suffix(".json")).get("cpu")
        if seconds is None:
            return None
        total += seconds
    return total


def is_finished(run: PlannedRun) -> bool:
    """Return whether a run is tuned and has translated all its test sets."""
    return read_record(run) is not None and all(is_translated(run, test) for test in run.tests)


def translation_path(run: PlannedRun, test: SharedText) -> Path:
    """Return the file of a run's translation of a test set."""
    return run.directory / "tests" / f"{test.name}.out"


def count_decodings(run: PlannedRun) -> int:
    """Return how often an unfinished run has decoded the tuning set."""
    if not run.work.is_dir():
        return 0
    return sum(_DECODING.fullmatch(path.name) is not None for path in run.work.iterdir())


def check_definition(run: PlannedRun) -> None:
    """Check that files of an earlier call are those of the same run.

    Raises:
        DataError: the run was begun with other settings or files.
    """
    path = run.directory / "run.json"
    if not path.is_file():
        return
    earlier, now = _read_json(path), json.loads(json.dumps(run.definition))
    if earlier == now:
        return
    differences = ", ".join(_list_differences(earlier, now))
    raise DataError(
        f"{path}: the run was begun with another definition ({differences}). Remove"
        f" {run.directory} to repeat it, or choose another {{--directory}}"
    )


def _list_differences(earlier: Any, now: Any, name: str = "") -> list[str]:
    if isinstance(earlier, dict) and isinstance(now, dict):
        return [
            difference
            for key in dict.fromkeys([*earlier, *now])
            for difference in _list_differences(earlier.get(key), now.get(key), key)
        ]
    return [] if earlier == now else [f"{name}: {json.dumps(earlier)}, now {json.dumps(now)}"]


def finish_run(run: PlannedRun, watch: Watcher = ignore_event) -> None:
    """Do the unfinished steps of a run; a call after a kill continues it.

    Raises:
        DataError: the run was begun with another definition, or another process works on it.
        MosesplugError, FormatError, OSError: as ``tune``; or a program failed.
    """
    with _ONE_AT_A_TIME:
        run.directory.mkdir(parents=True, exist_ok=True)
        with lock_directory(run.directory / "run.lock"):
            check_definition(run)
            _write_json(run.directory / "run.json", run.definition)
            if read_record(run) is None:
                _tune(run, watch)
            for test in run.tests:
                if not is_translated(run, test):
                    _translate(run, test, watch)
            if not run.keeps_lists:
                _remove_lists(run.work)


class _Meter:
    """Measures CPU and wall time, and keeps them in a file after each iteration."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = (0.0, 0.0)
        self.interruptions = 0
        if path.is_file():
            earlier = _read_json(path)
            self._before = earlier["cpu"], earlier["wall"]
            self.interruptions = earlier["interruptions"] + 1
        self._cpu, self._wall = _cpu_seconds(), time.monotonic()
        self.save()

    @property
    def cpu(self) -> float:
        """CPU seconds of this process and of children that have ended."""
        return self._before[0] + _cpu_seconds() - self._cpu

    @property
    def wall(self) -> float:
        return self._before[1] + time.monotonic() - self._wall

    def save(self) -> None:
        """Keep the time for a later attempt."""
        record = {"cpu": self.cpu, "wall": self.wall, "interruptions": self.interruptions}
        _write_json(self._path, record)


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _tune(run: PlannedRun, watch: Watcher) -> None:
    """Tune, and write the record of the tuning."""
    meter = _Meter(run.directory / "cost.json")
    decodings: int | None = 0
    if run.is_untuned:
        run.work.mkdir(exist_ok=True)
    elif run.command:
        # Other programs begin again: few of them continue exactly.
        shutil.rmtree(run.work, ignore_errors=True)
        log = run.directory / "log"
        run_command(
            run.command,
            directory=Path.cwd(),  # file names in the command count from there
            stdout=log,
            stderr=log.with_suffix(".err"),
            what="tuning program",
        )
        decodings = count_decodings(run) or None
    else:
        run.work.mkdir(exist_ok=True)

        def watch_and_save(event: Event) -> None:
            if isinstance(event, IterationFinished | EpochLearned):
                meter.save()
            watch(event)

        decodings = len(tune(run.configure(), watch_and_save).iterations)
    record = TuningRecord(
        round(meter.cpu, 3),
        round(meter.wall, 3),
        meter.interruptions,
        decodings,
        _count_active(_find_result(run)),
    )
    _write_json(run.directory / "tuned.json", asdict(record))
    (run.directory / "cost.json").unlink()


def _find_result(run: PlannedRun) -> Path:
    """Return the file with the resulting weights.

    Raises:
        DataError: the tuning program did not write it.
    """
    if run.is_untuned:
        return Path(run.values["config"])
    path = run.result or result_path(run.configure(), Workspace(run.work, 0))
    if not path.is_file():
        raise DataError(
            f"{run.label}: the tuning program wrote no {path}. See {run.directory / 'log.err'}, or"
            " name its result in the key result"
        )
    return path


def _count_active(path: Path) -> int:
    weights = read_weights(path)
    return int(np.count_nonzero([*weights.dense, *weights.all_sparse.values()]))


def _translate(run: PlannedRun, test: SharedText, watch: Watcher) -> None:
    """Translate a test set with the resulting weights."""
    cpu, wall = _cpu_seconds(), time.monotonic()
    path = translation_path(run, test)
    path.parent.mkdir(exist_ok=True)
    lines = translate_text(
        run.configure(), _find_result(run), test.input, path.parent, test.name, watch
    )
    write_atomic(path, b"".join(line + b"\n" for line in lines))
    record = {
        "input": test.digest,
        "cpu": round(_cpu_seconds() - cpu, 3),
        "wall": round(time.monotonic() - wall, 3),
    }
    _write_json(path.with_suffix(".json"), record)


def _remove_lists(work: Path) -> None:
    """Remove stores, n-best lists and search graphs of a working directory."""
    for path in list(work.iterdir()):
        if _LISTS.fullmatch(path.name):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path} is damaged. Remove it to repeat this step") from error
    return dict(document)


def _write_json(path: Path, document: Any) -> None:
    write_atomic(path, (json.dumps(document, indent=1) + "\n").encode())
