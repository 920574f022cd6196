"""``mosesplug nbest show``, ``nbest diff`` and ``weights why``."""

from __future__ import annotations

from typing import cast

from mosesplug.cli.inspect.store_options import NbestDiffCommand, NbestShowCommand
from mosesplug.cli.inspect.weight_options import WeightsWhyCommand
from mosesplug.cli.shared.output import note_weighting
from mosesplug.cli.shared.parameters import parse_iteration
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import UsageError
from mosesplug.results.views.first_bests import compare_first_bests, compare_iterations
from mosesplug.results.views.run import open_run
from mosesplug.results.views.sentence import (
    SentenceHypotheses,
    SortKey,
    compare_hypotheses,
    read_sentence,
)
from mosesplug.results.views.texts import ParallelText
from mosesplug.results.weights.sources import read_weights_of


def show(options: NbestShowCommand) -> None:
    """Show the hypotheses of one sentence with their scores and roles."""
    if options.sort not in ("model", "metric"):
        raise UsageError(f"--sort takes model or metric, not {options.sort!r}")
    sentence = _read(options, options.sentence, cast("SortKey", options.sort))
    print_record(sentence.choose(options.top, with_features=options.features))


def diff(options: NbestDiffCommand) -> None:
    """Compare two hypotheses, weight vectors or iterations, feature by feature."""
    if options.iterations is not None:
        _diff_iterations(options, options.iterations)
    elif options.weights is not None and len(options.weights) > 1:
        _diff_weights(options, options.weights)
    elif options.sentence is None:
        raise UsageError(
            "name a SENTENCE, or two iterations: --iterations A B, or two weight vectors: "
            "--weights A --weights B"
        )
    else:
        _compare(options, options.sentence)


def why(options: WeightsWhyCommand) -> None:
    """Show what makes a hypothesis win over another one, feature by feature."""
    _compare(options, options.sentence)


def _compare(options: NbestDiffCommand | WeightsWhyCommand, number: str) -> None:
    sentence = _read(options, number)
    a, b = sentence.find(options.first or "1-best"), sentence.find(options.second or "oracle")
    print_record(compare_hypotheses(sentence, a, b))


def _read(
    options: NbestShowCommand | NbestDiffCommand | WeightsWhyCommand,
    sentence: str,
    by: SortKey = "model",
) -> SentenceHypotheses:
    weights = options.weights
    if isinstance(weights, list):
        (weights,) = weights  # two are compared elsewhere
    with open_run(options.store, with_lists=True) as run:
        return read_sentence(
            run,
            run.find_sentence(sentence),
            iteration=parse_iteration(options.iteration),
            weights=run.arrange_weights(read_weights_of(weights)),
            text=ParallelText.read(options.source, options.refs, run.store, options.ids),
            by=by,
        )


def _diff_iterations(options: NbestDiffCommand, iterations: tuple[int, int]) -> None:
    if options.sentence is not None or options.weights or options.iteration != "all":
        raise UsageError(
            "--iterations compares whole iterations, each at its own weights: leave SENTENCE, "
            "--iteration and --weights out"
        )
    with open_run(options.store, with_lists=True) as run:
        text = ParallelText.read(options.source, options.refs, run.store, options.ids)
        note_weighting(run)
        difference = compare_iterations(run, *iterations, text, options.top)
    print_record(difference)


def _diff_weights(options: NbestDiffCommand, names: list[str]) -> None:
    if len(names) != 2 or options.first is not None:
        raise UsageError(
            "two weight vectors choose a hypothesis each: give --weights twice, and leave A and B "
            "out"
        )
    with open_run(options.store, with_lists=True) as run:
        note_weighting(run)
        effect = compare_first_bests(
            run,
            [(name, run.arrange_weights(read_weights_of(name))) for name in names],
            sentence=None if options.sentence is None else run.find_sentence(options.sentence),
            iteration=parse_iteration(options.iteration),
            text=ParallelText.read(options.source, options.refs, run.store, options.ids),
            top=options.top,
        )
    print_record(effect)
