"""``mosesplug nbest show``, ``diff``: a sentence's hypotheses, two iterations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import cast

from mosesplug.cli.inspect.store_options import NbestDiffCommand, NbestShowCommand
from mosesplug.cli.shared.output import is_terminal, print_json
from mosesplug.cli.shared.parameters import parse_iteration
from mosesplug.cli.shared.tables import print_blocks, print_table
from mosesplug.errors import UsageError
from mosesplug.results.render.record import tabulate
from mosesplug.results.render.tables import Cell
from mosesplug.results.views.iterations import (
    FeatureChange,
    IterationDifference,
    SentenceChange,
    compare_iterations,
)
from mosesplug.results.views.run import open_run
from mosesplug.results.views.sentence import (
    FeatureContrast,
    ScoredHypothesis,
    SentenceHypotheses,
    SortKey,
    compare_hypotheses,
    find_matched_orders,
    read_sentence,
)
from mosesplug.results.views.texts import ParallelText
from mosesplug.results.weights.sources import read_weights_of

_BAR = 12
_FEATURES = 30
_COLORS = ("red", "yellow", "cyan", "green", "bold green")


def show(options: NbestShowCommand) -> None:
    """Show the hypotheses of one sentence with their scores and roles."""
    if options.sort not in ("model", "metric"):
        raise UsageError(f"--sort takes model or metric, not {options.sort!r}")
    sentence = _read(options, options.sentence, cast("SortKey", options.sort))
    every = sentence.hypotheses
    shown = [one for place, one in enumerate(every) if place < options.top or one.roles]
    if options.json:
        document = asdict(sentence)
        document["hypotheses"] = [asdict(hypothesis) for hypothesis in shown]
        print_json({**document, "of": len(every)})
        return
    _print_texts(sentence)
    _print_hypotheses(sentence, shown)
    if left_out := len(every) - len(shown):
        print(f"({left_out} more)")
    if options.features and shown:
        print()
        _print_contributions(sentence, shown)


def diff(options: NbestDiffCommand) -> None:
    """Compare two hypotheses of a sentence, or two iterations, feature by feature."""
    if options.iterations is not None:
        _diff_iterations(options, options.iterations)
        return
    if options.sentence is None:
        raise UsageError("name a SENTENCE, or two iterations: --iterations A B")
    sentence = _read(options, options.sentence)
    a, b = sentence.find(options.first or "1-best"), sentence.find(options.second or "oracle")
    contrasts = compare_hypotheses(sentence.names, a, b)
    if options.json:
        print_json(
            {
                "sentence": sentence.number,
                "id": sentence.id,
                "a": asdict(a),
                "b": asdict(b),
                "features": [asdict(contrast) for contrast in contrasts],
            }
        )
        return
    _print_texts(sentence)
    _print_hypotheses(sentence, [a, b])
    print()
    table = tabulate(FeatureContrast, (one for one in contrasts if one.a != one.b))
    scores = ("model score", f"{a.model:.4f}", f"{b.model:.4f}", f"{a.model - b.model:+.4f}")
    print_blocks([replace(table, rows=[*table.rows, scores])])


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


def _print_texts(sentence: SentenceHypotheses) -> None:
    if sentence.id is not None:
        print(f"sentence   {sentence.id} (number {sentence.number})")
    if sentence.source is not None:
        print(f"source     {sentence.source}")
    for text in sentence.references:
        print(f"reference  {text}")
    if sentence.source is not None or sentence.references:
        print()


def _print_hypotheses(sentence: SentenceHypotheses, shown: Sequence[ScoredHypothesis]) -> None:
    """Print a table, with colored words on a terminal if references are known."""
    columns = "rank model metric matches roles text"
    table = tabulate(ScoredHypothesis, shown, columns, {"metric": sentence.sentence_metric})
    if is_terminal() and sentence.references:
        table = replace(table, rows=[table.rows[0], *_color_words(sentence, table.plain[1:])])
    print_blocks([table])


def _color_words(
    sentence: SentenceHypotheses, rows: Sequence[tuple[str, ...]]
) -> Iterator[list[Cell]]:
    """Color each word of last cells by the longest matching n-gram that it is in."""
    references = [text.split() for text in sentence.references]
    for row in rows:
        words = row[-1].split()
        colors = (_COLORS[order] for order in find_matched_orders(words, references))
        yield [*row[:-1], [*zip(words, colors, strict=True)]]


def _print_contributions(sentence: SentenceHypotheses, shown: Sequence[ScoredHypothesis]) -> None:
    """Print weight times value, one column per hypothesis, and bars for the first."""
    parts = [
        {**dict(zip(sentence.names, one.contributions, strict=True)), **one.sparse} for one in shown
    ]
    names = dict.fromkeys(name for part in parts for name in part)
    largest = max((abs(value) for part in parts for value in part.values()), default=0.0) or 1.0
    rows = []
    for name in names:
        share = parts[0].get(name, 0.0) / largest
        # A minus sign marks what lowers the score.
        bar = ("-" if share < 0.0 else " ") + "#" * round(abs(share) * _BAR)
        rows.append((name, *(f"{part.get(name, 0.0):.3f}" for part in parts), bar))
    head = ("weight x value", *(f"#{one.rank}" for one in shown), f"#{shown[0].rank} as bars")
    print_table(head, rows, left=1, last=1)


def _diff_iterations(options: NbestDiffCommand, iterations: tuple[int, int]) -> None:
    if options.sentence is not None or options.weights is not None or options.iteration != "all":
        raise UsageError(
            "--iterations compares whole iterations, each at its own weights: leave SENTENCE, "
            "--iteration and --weights out"
        )
    with open_run(options.store, with_lists=True) as run:
        text = ParallelText.read(options.source, options.refs, run.store, options.ids)
        text.check_length(run.n_sentences)
        difference = compare_iterations(run, *iterations)
    if options.json:
        rows = [{**asdict(one), "overlap": one.overlap} for one in difference.sentences]
        print_json({**asdict(difference), "sentences": rows})
        return
    _print_overview(difference)
    print()
    _print_features(difference)
    ordered = sorted(difference.changed, key=lambda one: one.gain)
    gained = [one for one in ordered[::-1] if one.gain > 0.0]
    lost = [one for one in ordered if one.gain < 0.0]
    _print_changes(difference, "gained most", gained[: options.top], text)
    _print_changes(difference, "lost most", lost[: options.top], text)


def _print_overview(difference: IterationDifference) -> None:
    changed, sentences = difference.changed, difference.sentences
    other = sum(not (one.changed or one.same_hypothesis) for one in sentences)
    print(
        f"iteration {difference.a} to {difference.b}: {difference.metric} "
        f"{difference.score_a:.4f} to {difference.score_b:.4f} "
        f"({difference.score_b - difference.score_a:+.4f})"
    )
    print(
        f"{len(sentences)} sentences with lists in both: the 1-best of {len(changed)} has "
        f"other words, of {other} the same words with other features"
    )
    if changed:
        better = sum(one.gain > 0.0 for one in changed)
        worse = sum(one.gain < 0.0 for one in changed)
        mean = sum(one.gain for one in changed) / len(changed)
        there = sum(one.was_there for one in changed)
        print(
            f"of these {len(changed)}, {better} are better by {difference.sentence_metric}, "
            f"{worse} worse, mean change {mean:+.4f}; {there} were in the list of iteration "
            f"{difference.a}"
        )
    if sentences:
        overlap = sum(one.overlap for one in sentences) / len(sentences)
        shared = sum(one.shared for one in sentences)
        print(
            f"{shared} hypotheses are in both lists of their sentence: {100 * overlap:.1f}% of "
            "those in either, on average"
        )
    if not difference.weights_known:
        print("the weights of one of them are not known, and count as 0")


def _print_features(difference: IterationDifference) -> None:
    """Print the features, those that decided most first."""
    a, b, features = difference.a, difference.b, difference.features
    ordered = sorted(features, key=lambda one: -max(abs(one.lead_a), abs(one.lead_b)))
    print(
        f"features, and what they add to the lead of the new over the old 1-best, summed over "
        f"{len(difference.changed)} sentences:"
    )
    labels = {"weight_a": f"weight {a}", "weight_b": f"weight {b}"}
    labels |= {"lead_a": f"lead at {a}", "lead_b": f"lead at {b}"}
    columns = "feature weight_a weight_b change values lead_a lead_b"
    table = tabulate(FeatureChange, ordered[:_FEATURES], columns, labels)
    leads = sum(one.lead_a for one in features), sum(one.lead_b for one in features)
    every = ("all", "", "", "", "", *(f"{lead:+.4f}" for lead in leads))
    print_blocks([replace(table, rows=[*table.rows, every])])
    if len(ordered) > _FEATURES:
        print(f"({len(ordered) - _FEATURES} more)")


def _print_changes(
    difference: IterationDifference,
    title: str,
    sentences: Sequence[SentenceChange],
    text: ParallelText,
) -> None:
    if sentences:
        print(f"\n{title}:")
    for one in sentences:
        print(
            f"sentence {one.sentence}: {difference.sentence_metric} {one.metric_a:.4f} to "
            f"{one.metric_b:.4f} ({one.gain:+.4f}), model {one.model_a:.4f} to "
            f"{one.model_b:.4f}, lead {one.lead_a:+.4f} and {one.lead_b:+.4f}, {one.shared} "
            f"hypotheses in both lists of {one.hypotheses_a} and {one.hypotheses_b}"
        )
        lines = [
            ("source", text.source_sentence(one.sentence)),
            *(("reference", line) for line in text.reference_sentences(one.sentence)),
            (str(difference.a), one.text_a),
            (str(difference.b), one.text_b),
        ]
        for name, line in lines:
            if line is not None:
                print(f"  {name:9}  {line}")
