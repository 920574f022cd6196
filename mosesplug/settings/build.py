"""From the values of settings to the objects that a run works with, and back.

``make_plan`` is the way of every entrance: ``mosesplug tune``, ``mert-moses`` and settings files.
``collect_values`` is its inverse; it gives what ``settings.toml`` holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, get_args

from mosesplug.decoders.description import ASK
from mosesplug.errors import OptionName, UsageError
from mosesplug.metrics import Metric, metric
from mosesplug.metrics.registry import names_of_text, settings_of_signature
from mosesplug.optimizers import Algorithm, algorithms
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.options import (
    Opt,
    find_value,
    list_options,
)
from mosesplug.settings.checks import check_settings, convert, is_given, make_settings
from mosesplug.settings.configuration import Configuration, Repeats, RunPlan, Select, SelectRun
from mosesplug.settings.decoders import collect_decoder_values, make_decoding
from mosesplug.settings.paths import require_file, require_references
from mosesplug.settings.programs import check_transform
from mosesplug.settings.reported import ReportedMetric, find_reported, find_with_settings
from mosesplug.settings.scores.commands import ScoreCommands, make_score_commands
from mosesplug.settings.sharding import Sharding

_Values = Mapping[str, Any]
_Path = tuple[str, ...]


def make_plan(values: _Values) -> RunPlan:
    """Return what settings ask for.

    Args:
        values: the values by name; those that are missing have their defaults.

    Raises:
        UsageError: a value cannot be used, a file is missing, or settings exclude each other.
    """
    values = _resolve_last({name: value for name, value in values.items() if value is not None})
    if missing := [name for name in _list_required(values) if name not in values]:
        raise UsageError(f"missing: {', '.join(str(OptionName(name)) for name in missing)}")
    check_settings(list_options(RunPlan), values)
    source = values.get("input")
    select_run, select = choose_among_runs(values)
    if values.get("online"):
        values.setdefault("max-iterations", 0)
    elif (window := find_algorithm(values.get("algorithm", "mert")).window) >= 0:
        values.setdefault("iterations-window", window)
    root: _Path = ("configuration",)
    objective, reported = _metrics(values)
    objects: dict[_Path, Any] = {
        (*root, "input"): None if source is None else require_file(source, "the input"),
        (*root, "metric"): objective,
        (*root, "report_metrics"): reported,
        (*root, "select"): select,
        (*root, "existing"): _existing(values),
        (*root, "optimization", "options"): _options(values),
        (*root, "optimization", "sharding"): _sharding(values),
        ("select_run",): select_run,
    }
    objects |= make_decoding(values)
    objects[*root, "decoding", "transform"] = check_transform(values.get("transform"))
    return make_settings(RunPlan, values, objects, _convert)


def _metrics(values: _Values) -> tuple[Metric, tuple[ReportedMetric, ...]]:
    """Return the metric, and those to report; start commands that score."""
    options = {option.name for option in list_options(ScoreCommands)}
    commands = make_score_commands({name: values[name] for name in options & values.keys()})
    source = None
    if commands.commands and "input" in values and not values.get("input-type"):
        source = require_file(values["input"], "the input")
    texts = list(map(str, values.get("report-metric", ())))
    names = {name for text in texts for name in names_of_text(text)}
    default = next((name for name in commands.names if name not in names), "BLEU")
    name, settings = values.get("metric") or default, values.get("metric-settings", "")
    commands.check_use(("metric", "report-metric"), [name, *texts])
    outside = commands.make_metrics(source, Path(values["working-dir"]) / "scores")
    objective = metric(name, settings, outside)
    find = partial(find_with_settings, settings=settings, outside=outside)
    return objective, find_reported(texts, objective, find)


def _list_required(values: _Values) -> tuple[str, ...]:
    if values.get("decoder") == ASK:
        return ("refs", "config", "working-dir")
    decoder = () if "decode-command" in values else ("decoder",)
    return ("input", "refs", *decoder, "config", "working-dir")


def make_sharding(name: str, values: _Values) -> Sharding | None:
    """Return the settings of parallel learning; None if none of them is given.

    Args:
        values: the values of the settings in ``Sharding``, and others.

    Raises:
        UsageError: the algorithm cannot be sharded, or settings exclude each other.
    """
    settings = list_options(Sharding)
    values = {
        setting.name: values[setting.name] for setting in settings if is_given(values, setting.name)
    }
    if not values:
        return None
    tuner = find_algorithm(name)
    if tuner.learner is None:
        _check_batch_sharding(tuner, values)
    check_settings(settings, values)
    if "shard-directory" in values:
        values["shard-directory"] = str(Path(values["shard-directory"]).resolve())
    return make_settings(Sharding, values)


_OF_LEARNERS = ("mixing", "keep", "async", "async-order")
"""Settings of shards that only online learners have."""


def _check_batch_sharding(tuner: Algorithm, values: _Values) -> None:
    """Raise ``UsageError`` unless a batch optimizer supports these shard settings."""
    if not tuner.maps_shards:
        known = algorithms().values()
        able = sorted(one.name for one in known if one.maps_shards or one.learner is not None)
        raise UsageError(
            f"{tuner.name} cannot learn in shards or on workers; these can: {', '.join(able)}"
        )
    for name in _OF_LEARNERS:
        if name in values:
            raise UsageError(
                f"{OptionName(name)} is for online learners, not for {tuner.name}: leave it out"
            )


def _sharding(values: _Values) -> Sharding | None:
    return make_sharding(values.get("algorithm", "mert"), values)


def _convert(option: Opt, value: Any) -> Any:
    """Return a value as its field holds it."""
    if option.kind != "path" or not isinstance(value, str | Path):
        return convert(option, value)
    if option.exists == "file":
        return require_file(value, option.what)
    return require_references(value) if option.exists == "references" else Path(value).absolute()


def _resolve_last(values: dict[str, Any]) -> dict[str, Any]:
    """Put the setting that ``--last`` stands for in its place."""
    if not values.pop("last", False):
        return values
    name = "select-run" if "runs" in values else "select"
    if name in values:
        raise UsageError(f"{{--last}} and {OptionName(name)} exclude each other: use one of them")
    return {**values, name: "last"}


def choose_among_runs(values: _Values) -> tuple[SelectRun | None, Select | None]:
    """Return what chooses among several runs, and what among the weights of each run.

    Args:
        values: the values of the settings ``runs``, ``select`` and ``select-run``.

    Raises:
        UsageError: ``select`` has a value of the other.
    """
    select, within = values.get("select"), values.get("select-run")
    if "runs" not in values:
        if select == "median":
            raise UsageError("{--select median} requires {--runs} N")
        return None, select
    among = get_args(SelectRun)
    if select is not None and select not in among:
        raise UsageError(
            f"with {{--runs}}, {{--select}} chooses among the runs: {', '.join(among)}. Use"
            f" {{--select-run}} {select} to choose the weights of each run."
        )
    return select, within


def _existing(values: _Values) -> str:
    if values.get("continue"):
        return "continue"
    return "overwrite" if values.get("overwrite") else "refuse"


def _options(values: _Values) -> dict[str, object]:
    options = dict(values.get("option", {}))
    return options if "epochs" not in values else options | {"epochs": values["epochs"]}


def collect_values(
    configuration: Configuration,
    seed: int | None = None,
    *,
    runs: int | None = None,
    choice: SelectRun | None = None,
) -> dict[str, Any]:
    """Return a run's settings by name; ``make_plan`` makes the same run of them.

    What no setting describes, as a metric of the caller's own, is left out.

    Args:
        runs: the number of runs, if not a single one.
        choice: whose weights the result of several runs has.
    """
    plan = RunPlan(configuration, Repeats(runs))
    values: dict[str, Any] = {}
    for option in list_options(RunPlan):
        value = find_value(plan, option.path) if option.path and option.is_saved else None
        if value is not None and value != ():
            values[option.name] = _plain(option, value)
    with suppress(UsageError):
        signature = configuration.metric.signature()
        values["metric"], values["metric-settings"] = settings_of_signature(signature)
    values |= collect_decoder_values(configuration)
    if configuration.optimization.options:
        values["option"] = dict(configuration.optimization.options)
    values["select"] = configuration.select
    if configuration.select is None and not (configuration.online or configuration.held_out):
        values["select"] = "last"
    if runs is not None:
        values |= {"select": choice, "select-run": values["select"]}
    if find_algorithm(configuration.optimization.algorithm).learner is None:
        # Their defaults stand in the object; make_sharding rejects them for a batch optimizer.
        values = {name: value for name, value in values.items() if name not in _OF_LEARNERS}
    if configuration.optimization.predictable_seeds:
        values.pop("seed", None)
    elif seed is not None:
        values["seed"] = seed
    values = {name: value for name, value in values.items() if value is not None}
    return {
        option.name: values[option.name]
        for option in list_options(RunPlan)
        if option.name in values and not _is_idle(option, values)
    }


def _is_idle(setting: Opt, values: _Values) -> bool:
    """Return whether a value is a default that the other values exclude."""
    if values[setting.name] != setting.default:
        return False
    try:
        check_settings([setting], values)
    except UsageError:
        return True
    return False


def _plain(setting: Opt, value: Any) -> Any:
    if setting.kind == "flag":
        return bool(value)
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
