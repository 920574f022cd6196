"""``mosesplug mbr``: choose translations by minimum Bayes risk."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator

from formats.pipes import wrap_files
from formats.text import StrPath
from formats.weights.named import find_weight_files
from mosesplug.cli.inspect.list_options import MbrCommand
from mosesplug.cli.shared.output import check_output, print_formats, progress_bar, write_output
from mosesplug.errors import UsageError
from mosesplug.forest.mbr import Criterion, Decision
from mosesplug.learning.lists.outside import find_metric_of
from mosesplug.learning.weighted_graphs import read_graph_weights, read_weighted_graphs
from mosesplug.learning.weights import find_graph_weights
from mosesplug.metrics import Metric
from mosesplug.metrics.bleu.linear import LinearBleu
from mosesplug.results.choices.mbr import (
    MbrTask,
    check_utility,
    decide_translations,
    read_graph_tasks,
    read_list_tasks,
)
from mosesplug.results.views.stored_graphs import read_stored_graphs
from mosesplug.results.views.texts import format_translations
from mosesplug.results.weights.sources import read_weights_of
from mosesplug.settings.scores.files import ScoreSource, parse_score_sources


def mbr(options: MbrCommand) -> None:
    """Choose translations by minimum Bayes risk or consensus."""
    _check(options)
    utility = _parse_utility(options.scores)
    metric = _find_metric(options)
    inputs = [options.graphs, options.nbest, options.store, options.sparse_weights]
    paths = [path for path in inputs if path is not None]
    paths += options.settings.input_paths
    paths += [] if options.weights is None else find_weight_files(options.weights)
    if options.graphs is not None and (beside := find_graph_weights([options.graphs])) is not None:
        paths.append(beside)
    paths += [] if utility is None else utility.paths
    check_output(options.output, inputs=paths)
    began = time.perf_counter()
    precisions = LinearBleu.of_precisions(
        _check_share(options.precision, 0.8, "--precision"),
        _check_share(options.ratio, 0.6, "--ratio"),
    )
    criterion = Criterion(
        "list" if options.list_mbr else "lattice" if options.lattice_mbr else "consensus",
        options.scale,
        options.size,
        options.beam,
        precisions,
    )
    lists = None if options.nbest is None else wrap_files([options.nbest])[0]
    if lists is not None:
        print_formats([lists], options.settings, quiet=options.quiet)
    decisions: dict[int, Decision] = {}
    with progress_bar(options.quiet) as progress:
        tasks = _read_tasks(options, lists, utility, metric)
        for sentence, decision in decide_translations(tasks, criterion, options.threads):
            decisions[sentence] = decision
            progress(len(decisions), 0, "sentences")
    texts = {sentence: b" ".join(decision.words) for sentence, decision in decisions.items()}
    write_output(options.output, format_translations(texts))
    if not options.quiet:
        _report(decisions, time.perf_counter() - began)


def _check(options: MbrCommand) -> None:
    """Reject settings of lists without lists, and numbers that are not finite."""
    commands = options.settings.score_commands.commands
    option = options.settings.first_given or ("score-command" if commands else None)
    if options.nbest is None and option is not None:
        raise UsageError(f"--{option} requires --nbest")
    if options.settings.source is not None and not (commands or options.settings.templates):
        raise UsageError("--source requires --score-command or --templates")
    for other in ("scores", "list_mbr", "lattice_mbr"):
        if commands and getattr(options, other):
            name = other.replace("_", "-")
            raise UsageError(f"--score-command and --{name} exclude each other")
    for value, name in ((options.scale, "--scale"), (options.beam, "--beam")):
        if value is not None and not math.isfinite(value):
            raise UsageError(f"{name}={value:g}: it must be a finite number")


def _find_metric(options: MbrCommand) -> Metric | None:
    """Return the metric that compares hypotheses; start commands that score."""
    commands = options.settings.score_commands
    name = options.metric or next(iter(commands.names), None)
    if name is None:
        return None
    commands.check_use("metric", [name])
    outside = commands.make_metrics(options.settings.source)
    metric = find_metric_of(name, options.metric_settings, outside)
    check_utility(metric)
    return metric


def _parse_utility(text: str | None) -> ScoreSource | None:
    """Return the file of utilities that ``--scores`` names."""
    if text is None:
        return None
    (source,) = parse_score_sources([text])
    if len(source.paths) != 1 or source.formula is not None:
        raise UsageError(f"--scores={text}: mbr takes NAME=FILE or NAME=FILE:error, one file")
    return source


def _check_share(value: float | None, default: float, option: str) -> float:
    """Return a number above 0 and at most 1."""
    if value is None:
        return default
    if not 0.0 < value <= 1.0:
        raise UsageError(f"{option}={value:g}: it must be above 0, and 1 at most")
    return value


def _read_tasks(
    options: MbrCommand, lists: StrPath | None, utility: ScoreSource | None, metric: Metric | None
) -> Iterator[MbrTask]:
    file = read_weights_of(options.weights, options.sparse_weights)
    if lists is not None:
        return read_list_tasks(lists, options.settings, file, utility, metric)
    if options.store is not None:
        known = None if file is None else read_graph_weights(file, [])
        return read_graph_tasks(read_stored_graphs(options.store, known, options.iteration))
    graphs = options.graphs
    if graphs is None:
        raise UsageError("there is no input: give GRAPHS, --nbest FILE or --store DIR")
    known = read_graph_weights(file, [graphs])
    if known is None:
        place = graphs if graphs.is_dir() else graphs.parent
        raise UsageError(f"there is no file {place / 'weights'}: give --weights FILE")
    return read_graph_tasks(read_weighted_graphs([graphs], known))


def _report(decisions: dict[int, Decision], seconds: float) -> None:
    other = sum(not decision.is_best for decision in decisions.values())
    lines = [f"{len(decisions)} sentences, {other} not the model's best, {seconds:.1f} s"]
    missing = sorted(set(range(max(decisions, default=-1) + 1)) - decisions.keys())
    if missing:
        lines.append(
            f"{len(missing)} sentences have no graph or list, the first is {missing[0]}: their "
            "lines are empty"
        )
    print("\n".join(lines), file=sys.stderr)
