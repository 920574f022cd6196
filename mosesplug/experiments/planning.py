"""Plan the runs of an experiment, and check all before anything is decoded.

Runs share files in the experiment's directory: ``texts/`` has the tuning sets, cut and unpacked,
``configs/`` the configurations with absolute paths of models.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from formats.errors import FormatError
from formats.moses.ini import find_missing_models, read_moses_ini, with_absolute_paths
from formats.references import reference_files
from formats.text import read_bytes, write_atomic
from mosesplug.decoders.description import DecodedGraphs, OutsideDecoder
from mosesplug.errors import DataError, UsageError, suggest
from mosesplug.experiments.file import (
    PLACEHOLDER,
    Experiment,
    NamedTable,
    suggest_or_list,
)
from mosesplug.experiments.keys import FeatureKeys, SystemKeys
from mosesplug.experiments.texts import SharedText, digest, plan_text
from mosesplug.metrics.registry import metric_of_text
from mosesplug.options import list_options
from mosesplug.settings.build import make_plan
from mosesplug.settings.configuration import Configuration, RunPlan
from mosesplug.settings.defaults import fill_defaults
from mosesplug.settings.online import parse_monitors
from mosesplug.tuning.setup import check_run

_RUN_PLACEHOLDERS = ("input", "refs", "config", "seed", "directory")
"""Placeholders of a command beside settings of ``tune``."""


@dataclass(frozen=True)
class Row:
    """A system with a feature set on a tuning set: a row of the table."""

    system: str
    features: str
    tuning: str

    @property
    def label(self) -> str:
        """The names, as in the name of the directory."""
        return f"{self.system}/{self.features}/{self.tuning}"


@dataclass(frozen=True)
class PlannedRun:
    """One seed of a row, with everything that a worker needs to finish it.

    Attributes:
        directory: of its files; the working directory is ``work`` in it.
        values: the settings of ``tune``, all of them.
        command: the command line of another tuning program; empty for ``tune``.
        result: the file of weights that this program writes; None for ``tune``.
        is_untuned: whether the test sets are translated with the weights of the feature set.
        n_sentences: the size of the tuning set.
        inputs: digests of the files that the run depends on, by what they are.
    """

    row: Row
    seed: int
    directory: Path
    values: Mapping[str, Any]
    command: tuple[str, ...]
    result: Path | None
    is_untuned: bool
    n_sentences: int
    inputs: Mapping[str, str]
    tests: tuple[SharedText, ...]
    keeps_lists: bool

    @property
    def label(self) -> str:
        """The name of the run in messages."""
        return f"{self.row.label} seed {self.seed}"

    @property
    def work(self) -> Path:
        """The working directory."""
        return self.directory / "work"

    @property
    def definition(self) -> dict[str, Any]:
        """The settings and files on which the results depend, as in ``run.json``."""
        settings = {
            name: value for name, value in self.values.items() if name not in _WITHOUT_EFFECT
        }
        return {
            "settings": settings,
            "command": list(self.command),
            "untuned": self.is_untuned,
            "inputs": dict(self.inputs),
        }

    def configure(self) -> Configuration:
        """Return the configuration of ``tune``, which continues an earlier attempt."""
        return make_plan(fill_defaults({**self.values, "continue": True})).configuration


_WITHOUT_EFFECT = ("threads", "workers", "scheduler", "working-dir", "input", "refs", "config")
"""Settings that change no result, and files whose content counts, not their name."""


@dataclass(frozen=True)
class ExperimentPlan:
    """All runs, in the order in which they begin.

    Attributes:
        rows: the rows of the table, in the order of the file.
        baselines: the row that each row is compared with; a baseline is compared with itself.
        files: content of the files that runs share.
    """

    experiment: Experiment
    rows: tuple[Row, ...]
    baselines: Mapping[Row, Row]
    runs: tuple[PlannedRun, ...]
    tests: tuple[SharedText, ...]
    files: Mapping[Path, bytes]

    def write_files(self) -> None:
        """Write the files that runs share, unless they are there and in use."""
        for path, data in self.files.items():
            if not path.is_file() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(path, data)

    def runs_of(self, row: Row) -> list[PlannedRun]:
        """Return the runs of a row, by seed."""
        return [run for run in self.runs if run.row == row]


def plan_experiment(experiment: Experiment) -> ExperimentPlan:
    """Check an experiment, and return its runs; nothing is written.

    The first seed of every row comes before the second seed of any, so that a table has all rows
    early.

    Raises:
        UsageError: a setting, name or file of the experiment cannot be used, or a run would write
            where another one does. The message names file and key.
    """
    _check_metrics(experiment)
    files: dict[Path, bytes] = {}
    tuning: dict[str, SharedText] = {}
    tests: dict[str, SharedText] = {}
    for table, texts, tables in (
        ("tuning", tuning, experiment.tuning),
        ("tests", tests, experiment.tests),
    ):
        for name, entry in tables.items():
            texts[name], own = plan_text(experiment, table, name, entry.keys)
            files |= own
    configs = {one.name: _plan_config(experiment, one) for one in experiment.features.values()}
    rows = [
        Row(system.name, features, text)
        for system in experiment.systems.values()
        for features in system.keys.features or experiment.features
        for text in system.keys.tuning or experiment.tuning
    ]
    seeds = {
        row: experiment.systems[row.system].keys.seeds or experiment.keys.seeds for row in rows
    }
    most = max(map(len, seeds.values()))
    runs = [
        _plan_run(experiment, row, seeds[row][place], tuning, configs, tuple(tests.values()))
        for place in range(most)
        for row in rows
        if place < len(seeds[row])
    ]
    _check_shared_directories(experiment, runs)
    baselines = _find_baselines(experiment, rows)
    for run in runs[: len(rows)]:
        _check_run(experiment, run)
    files |= {config.path: config.data for config in configs.values()}
    return ExperimentPlan(
        experiment, tuple(rows), baselines, tuple(runs), tuple(tests.values()), files
    )


def _check_metrics(experiment: Experiment) -> None:
    if not experiment.keys.metrics:
        raise experiment.error("metrics", "name one metric or more, as 'BLEU'")
    for text in experiment.keys.metrics:
        try:
            metric_of_text(text)
        except UsageError as error:
            raise experiment.error("metrics", error) from error


@dataclass(frozen=True)
class _SharedConfig:
    """A configuration in the directory of the experiment, with its content."""

    path: Path
    data: bytes


def _plan_config(experiment: Experiment, features: NamedTable[FeatureKeys]) -> _SharedConfig:
    """Return a configuration whose model files have absolute names."""
    place, config = f"[features.{features.name}] config", features.keys.config
    data = read_bytes(config)
    if config.suffix == ".ini":
        try:
            ini = read_moses_ini(config)
            if lost := find_missing_models(ini):
                raise experiment.error(
                    place,
                    f"{config}:{lost[0].line}: no model file begins with {lost[0].text}. Correct"
                    " the path, which counts from the folder of this file",
                )
            data = with_absolute_paths(ini)
        except FormatError as error:
            raise experiment.error(place, error) from error
    directory = experiment.directory / "configs"
    return _SharedConfig(directory / f"{features.name}.{config.name}", data)


def _plan_run(
    experiment: Experiment,
    row: Row,
    seed: int,
    tuning: Mapping[str, SharedText],
    configs: Mapping[str, _SharedConfig],
    tests: tuple[SharedText, ...],
) -> PlannedRun:
    system, text = experiment.systems[row.system], tuning[row.tuning]
    directory = experiment.directory / "runs" / row.system / row.features / row.tuning / f"{seed}"
    config = configs[row.features]
    values = {
        **experiment.values,
        **experiment.features[row.features].values,
        **experiment.tuning[row.tuning].values,
        **system.values,
        "input": str(text.input),
        "refs": str(text.references),
        "config": str(config.path),
        "working-dir": str(directory / "work"),
        "seed": seed,
    }
    command: tuple[str, ...] = ()
    if system.keys.command:
        command = _fill_command(experiment, system, values)
    return PlannedRun(
        row,
        seed,
        directory,
        values,
        command,
        directory / "work" / (system.keys.result or "moses.ini") if command else None,
        system.keys.untuned,
        text.n_sentences,
        {
            "tuning set": text.full_digest,
            "configuration": digest(config.data),
            **_digest_files(values),
        },
        tests,
        experiment.keys.keep_lists,
    )


def _digest_files(values: Mapping[str, Any]) -> dict[str, str]:
    """Return digests of further files that settings name."""
    digests: dict[str, str] = {}
    for option in list_options(RunPlan):
        if option.name not in values or option.name in _WITHOUT_EFFECT or not option.exists:
            continue
        value = values[option.name]
        if isinstance(value, list) and option.kind == "path":
            continue  # the settings hold what a file would
        if option.exists == "monitor":
            pairs = parse_monitors(value)
            files = [f for one in pairs for f in (one.input, *reference_files(one.references))]
        else:
            files = reference_files(value) if option.exists == "references" else [Path(value)]
        if all(path.is_file() for path in files):
            digests[option.name] = digest(b"".join(map(read_bytes, files)))
    return digests


def _fill_command(
    experiment: Experiment, system: NamedTable[SystemKeys], values: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the words of a command with each word in braces replaced."""
    place = f"[systems.{system.name}] command"
    try:
        words = shlex.split(system.keys.command)
    except ValueError as error:
        raise experiment.error(place, error) from error
    known = {
        **{name: value for name, value in values.items() if name != "working-dir"},
        "directory": values["working-dir"],
    }
    settings = {option.name for option in list_options(RunPlan)}

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in known:
            return str(known[name])
        if name in settings:
            raise experiment.error(
                place, f"{match[0]} has no value: give {name} in [settings] or here"
            )
        similar = suggest(name, [*_RUN_PLACEHOLDERS, *known])
        raise experiment.error(
            place,
            f"unknown {match[0]}{similar}. Known are {', '.join(_RUN_PLACEHOLDERS)} in braces,"
            " settings of tune, and names in [paths]",
        )

    return tuple(PLACEHOLDER.sub(value, word) for word in words)


def _check_shared_directories(experiment: Experiment, runs: Sequence[PlannedRun]) -> None:
    """Check that each command writes into the directory of its run."""
    for run in runs:
        for word, following in pairwise((*run.command, "")):
            option, equals, value = word.partition("=")
            value = value if equals else following
            if option.lstrip("-") == "working-dir" and str(run.work) not in value:
                raise experiment.error(
                    f"[systems.{run.row.system}] command",
                    f"all runs would write into {value}: give {option} {{directory}}",
                )
        if run.command and not any(str(run.work) in word for word in run.command):
            raise experiment.error(
                f"[systems.{run.row.system}] command",
                "all runs would write into one directory: pass the directory of each to the"
                " program as {directory}",
            )
    known: dict[tuple[str, ...], PlannedRun] = {}
    for run in runs:
        key = tuple(word.replace(str(run.work), "{directory}") for word in run.command)
        if not run.command:
            continue
        other = known.setdefault(key, run)
        if other.row == run.row and other.seed != run.seed:
            raise experiment.error(
                f"[systems.{run.row.system}] command",
                f"seeds {other.seed} and {run.seed} would be the same run: pass {{seed}} to the"
                " program, or give the system one seed",
            )


def _find_baselines(experiment: Experiment, rows: Sequence[Row]) -> dict[Row, Row]:
    """Return the row that each row is compared with."""
    text = experiment.keys.baseline
    names = text.split("/")
    known = dict.fromkeys(row.system for row in rows)
    if names[0] not in known:
        raise experiment.error(
            "baseline",
            f"there is no system {names[0]}{suggest_or_list(names[0], known)}",
        )
    candidates = [
        row
        for row in rows
        if all(
            own == name
            for own, name in zip((row.system, row.features, row.tuning), names, strict=False)
        )
    ]
    if len(names) > 3 or not candidates:
        own = [row.label for row in rows if row.system == names[0]]
        raise experiment.error(
            "baseline",
            f"the table has no row {text}. Write SYSTEM, SYSTEM/FEATURES or SYSTEM/FEATURES/TUNING:"
            f" the rows of {names[0]} are {', '.join(own)}",
        )
    return {row: _find_baseline(experiment, row, candidates) for row in rows}


def _find_baseline(experiment: Experiment, row: Row, candidates: Sequence[Row]) -> Row:
    """Return the candidate with the tuning set and features of a row, or the only one."""
    for attribute in ("tuning", "features"):
        own = [one for one in candidates if getattr(one, attribute) == getattr(row, attribute)]
        candidates = own or candidates
    if len(candidates) > 1:
        labels = ", ".join(one.label for one in candidates)
        raise experiment.error(
            "baseline",
            f"{row.label} could be compared with {labels}: name features and tuning set, too, as"
            f" {candidates[0].label}",
        )
    return candidates[0]


def _check_run(experiment: Experiment, run: PlannedRun) -> None:
    """Check the settings of a row, as its run will."""
    system = experiment.systems[run.row.system]
    text = experiment.tuning[run.row.tuning].keys
    originals = {
        "input": str(text.input),
        "refs": str(text.refs),
        "config": str(experiment.features[run.row.features].keys.config),
    }
    try:
        configuration = replace(run, values={**run.values, **originals}).configure()
        if not run.command and not run.is_untuned:
            check_run(configuration)
        decoder = configuration.decoding.decoder
        if isinstance(decoder, DecodedGraphs | OutsideDecoder):
            raise UsageError("this decoder cannot translate the test sets: name a program")
        if configuration.decoding.transform is not None:
            raise UsageError("transform rewrites n-best lists only, not translations of test sets")
    except (UsageError, DataError, FormatError) as error:
        raise experiment.error(f"[systems.{system.name}]", error) from error
