"""``mosesplug nbest show``, ``diff``: a sentence's hypotheses, two iterations."""

from __future__ import annotations

from typing import cast

from mosesplug.cli.inspect.store_options import NbestDiffCommand, NbestShowCommand
from mosesplug.cli.shared.parameters import parse_iteration
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import UsageError
from mosesplug.results.views.iterations import compare_iterations
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
    """Compare two hypotheses of a sentence, or two iterations, feature by feature."""
    if options.iterations is not None:
        _diff_iterations(options, options.iterations)
        return
    if options.sentence is None:
        raise UsageError("name a SENTENCE, or two iterations: --iterations A B")
    sentence = _read(options, options.sentence)
    a, b = sentence.find(options.first or "1-best"), sentence.find(options.second or "oracle")
    print_record(compare_hypotheses(sentence, a, b))


def _read(
    options: NbestShowCommand | NbestDiffCommand, sentence: str, by: SortKey = "model"
) -> SentenceHypotheses:
    with open_run(options.store, with_lists=True) as run:
        return read_sentence(
            run,
            run.find_sentence(sentence),
            iteration=parse_iteration(options.iteration),
            weights=run.arrange_weights(read_weights_of(options.weights)),
            text=ParallelText.read(options.source, options.refs, run.store, options.ids),
            by=by,
        )


def _diff_iterations(options: NbestDiffCommand, iterations: tuple[int, int]) -> None:
    if options.sentence is not None or options.weights is not None or options.iteration != "all":
        raise UsageError(
            "--iterations compares whole iterations, each at its own weights: leave SENTENCE, "
            "--iteration and --weights out"
        )
    with open_run(options.store, with_lists=True) as run:
        text = ParallelText.read(options.source, options.refs, run.store, options.ids)
        difference = compare_iterations(run, *iterations, text, options.top)
    print_record(difference)
