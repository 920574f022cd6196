"""``mosesplug nbest show``, ``diff``: a sentence's hypotheses, two iterations."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, cast

import typer

from mosesplug.cli.shared.parameters import (
    IterationOption,
    Json,
    References,
    SentenceId,
    SentenceIdsOfLines,
    Source,
    Store,
    StoreWeights,
    parse_iteration,
)
from mosesplug.errors import UsageError
from mosesplug.results.render.record import tabulate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mosesplug.results.render.tables import Cell
    from mosesplug.results.views.iterations import IterationDifference, SentenceChange
    from mosesplug.results.views.run import StoredRun
    from mosesplug.results.views.sentence import ScoredHypothesis, SentenceHypotheses, SortKey
    from mosesplug.results.views.texts import ParallelText

_BAR = 12
_FEATURES = 30
_COLORS = ("red", "yellow", "cyan", "green", "bold green")


def show(
    store: Store,
    sentence: SentenceId,
    iteration: IterationOption = "all",
    top: Annotated[int, typer.Option(min=1, help="Number of hypotheses.")] = 10,
    sort: Annotated[
        str, typer.Option(metavar="model|metric", help="Sort by this score, the largest first.")
    ] = "model",
    weights: StoreWeights = None,
    features: Annotated[
        bool, typer.Option("--features", help="Show weight times value of each feature.")
    ] = False,
    source: Source = None,
    refs: References = None,
    ids: SentenceIdsOfLines = None,
    json: Json = False,
) -> None:
    """Show the hypotheses of one sentence with their scores and roles.

    Roles are 1-best, oracle, hope and fear. Hope and fear have the largest sum and difference of
    model score and metric, at weights divided by their L1 norm. Hypotheses with a role are shown
    even below --top. With --refs, words on a terminal are colored by the longest matching n-gram.

    Example: mosesplug nbest show tuning 7 --refs dev.en --source dev.de --features
    """
    from mosesplug.cli.shared.output import print_json
    from mosesplug.results.views.run import open_run
    from mosesplug.results.views.sentence import read_sentence
    from mosesplug.results.views.texts import ParallelText
    from mosesplug.results.weights.sources import read_weights_of

    if sort not in ("model", "metric"):
        raise UsageError(f"--sort takes model or metric, not {sort!r}")
    with open_run(store, with_lists=True) as run:
        found = read_sentence(
            run,
            run.find_sentence(sentence),
            iteration=parse_iteration(iteration),
            weights=run.arrange_weights(read_weights_of(weights)),
            text=ParallelText.read(source, refs, run.store, ids),
            by=cast("SortKey", sort),
        )
    shown = [each for place, each in enumerate(found.hypotheses) if place < top or each.roles]
    if json:
        document = asdict(found)
        document["hypotheses"] = [asdict(each) for each in shown]
        print_json({**document, "of": len(found.hypotheses)})
        return
    _print_texts(found)
    _print_hypotheses(found, shown)
    if left_out := len(found.hypotheses) - len(shown):
        print(f"({left_out} more)")
    if features and shown:
        print()
        _print_contributions(found, shown)


def diff(
    store: Store,
    sentence: Annotated[
        str | None,
        typer.Argument(metavar="SENTENCE", help="A sentence id, or its number from 0."),
    ] = None,
    first: Annotated[
        str | None,
        typer.Argument(metavar="A", help="A rank, or 1-best, oracle, hope, fear [1-best]."),
    ] = None,
    second: Annotated[str | None, typer.Argument(metavar="B", help="Another [oracle].")] = None,
    iterations: Annotated[
        tuple[int, int] | None,
        typer.Option("--iterations", metavar="A B", help="Compare two iterations instead."),
    ] = None,
    iteration: IterationOption = "all",
    weights: StoreWeights = None,
    source: Source = None,
    refs: References = None,
    ids: SentenceIdsOfLines = None,
    top: Annotated[
        int,
        typer.Option(min=0, help="With --iterations, number of changed sentences to show."),
    ] = 5,
    json: Json = False,
) -> None:
    """Compare two hypotheses of a sentence, or two iterations, feature by feature.

    Features are sorted by their contribution to A's model score minus B's.

    The 1-best of an iteration (--iterations 3 4) is the decoder's own translation, the first of its
    list. Printed are the weights, the sentences whose 1-best changed, the change of the metric, the
    overlap of the lists, and for each feature the sum of weight times difference of values over the
    changed sentences: the lead of the new 1-best over the old, at the weights of both iterations.

    Example: mosesplug nbest diff tuning 7 1-best oracle --refs dev.en

    Example: mosesplug nbest diff tuning --iterations 3 4 --refs dev.en
    """
    from mosesplug.cli.shared.output import print_json
    from mosesplug.results.views.run import open_run
    from mosesplug.results.views.sentence import compare_hypotheses, read_sentence
    from mosesplug.results.views.texts import ParallelText
    from mosesplug.results.weights.sources import read_weights_of

    if iterations is not None:
        if sentence is not None or weights is not None or iteration != "all":
            raise UsageError(
                "--iterations compares whole iterations, each at its own weights: leave SENTENCE, "
                "--iteration and --weights out"
            )
        with open_run(store, with_lists=True) as run:
            text = ParallelText.read(source, refs, run.store, ids)
            _diff_iterations(run, iterations, top, text, json)
        return
    if sentence is None:
        raise UsageError("name a SENTENCE, or two iterations: --iterations A B")
    with open_run(store, with_lists=True) as run:
        found = read_sentence(
            run,
            run.find_sentence(sentence),
            iteration=parse_iteration(iteration),
            weights=run.arrange_weights(read_weights_of(weights)),
            text=ParallelText.read(source, refs, run.store, ids),
        )
    a, b = found.find(first or "1-best"), found.find(second or "oracle")
    contrasts = compare_hypotheses(found.names, a, b)
    if json:
        features = [asdict(each) for each in contrasts]
        print_json(
            {
                "sentence": found.number,
                "id": found.id,
                "a": asdict(a),
                "b": asdict(b),
                "features": features,
            }
        )
        return
    from mosesplug.cli.shared.tables import print_blocks
    from mosesplug.results.views.sentence import FeatureContrast

    _print_texts(found)
    _print_hypotheses(found, [a, b])
    print()
    contrast = tabulate(FeatureContrast, (each for each in contrasts if each.a != each.b))
    scores = ("model score", f"{a.model:.4f}", f"{b.model:.4f}", f"{a.model - b.model:+.4f}")
    print_blocks([replace(contrast, rows=[*contrast.rows, scores])])


def _print_texts(found: SentenceHypotheses) -> None:
    if found.id is not None:
        print(f"sentence   {found.id} (number {found.number})")
    if found.source is not None:
        print(f"source     {found.source}")
    for text in found.references:
        print(f"reference  {text}")
    if found.source is not None or found.references:
        print()


def _print_hypotheses(found: SentenceHypotheses, shown: list[ScoredHypothesis]) -> None:
    """Print a table, with colored words on a terminal if references are known."""
    from mosesplug.cli.shared.output import is_terminal
    from mosesplug.cli.shared.tables import print_blocks
    from mosesplug.results.views.sentence import ScoredHypothesis

    columns = "rank model metric matches roles text"
    table = tabulate(ScoredHypothesis, shown, columns, {"metric": found.sentence_metric})
    if is_terminal() and found.references:
        table = replace(table, rows=[table.rows[0], *_color_words(found, table.plain[1:])])
    print_blocks([table])


def _color_words(
    found: SentenceHypotheses, rows: Sequence[tuple[str, ...]]
) -> Iterator[list[Cell]]:
    """Color each word of last cells by the longest matching n-gram that it is in."""
    from mosesplug.results.views.sentence import find_matched_orders

    references = [text.split() for text in found.references]
    for row in rows:
        words = row[-1].split()
        orders = find_matched_orders(words, references)
        colors = (_COLORS[order] for order in orders)
        yield [*row[:-1], [*zip(words, colors, strict=True)]]


def _print_contributions(found: SentenceHypotheses, shown: list[ScoredHypothesis]) -> None:
    """Print weight times value, one column per hypothesis, and bars for the first."""
    from mosesplug.cli.shared.tables import print_table

    parts = [
        {**dict(zip(found.names, each.contributions, strict=True)), **each.sparse} for each in shown
    ]
    names = dict.fromkeys(name for part in parts for name in part)
    largest = max((abs(value) for part in parts for value in part.values()), default=0.0) or 1.0
    rows = [
        (
            name,
            *(f"{part.get(name, 0.0):.3f}" for part in parts),
            _draw_bar(parts[0].get(name, 0.0) / largest),
        )
        for name in names
    ]
    head = ("weight x value", *(f"#{each.rank}" for each in shown), f"#{shown[0].rank} as bars")
    print_table(head, rows, left=1, last=1)


def _draw_bar(share: float) -> str:
    """Return a bar, after a minus sign for what lowers the score."""
    return ("-" if share < 0.0 else " ") + "#" * round(abs(share) * _BAR)


def _diff_iterations(
    run: StoredRun, iterations: tuple[int, int], top: int, text: ParallelText, json: bool
) -> None:
    from mosesplug.cli.shared.output import print_json
    from mosesplug.results.views.iterations import compare_iterations

    text.check_length(run.n_sentences)
    found = compare_iterations(run, *iterations)
    if json:
        rows = [{**asdict(each), "overlap": each.overlap} for each in found.sentences]
        print_json({**asdict(found), "sentences": rows})
        return
    _print_overview(found)
    print()
    _print_features(found)
    ordered = sorted(found.changed, key=lambda each: each.gain)
    gained = [each for each in ordered[::-1] if each.gain > 0.0]
    lost = [each for each in ordered if each.gain < 0.0]
    _print_changes(found, "gained most", gained[:top], text)
    _print_changes(found, "lost most", lost[:top], text)


def _print_overview(found: IterationDifference) -> None:
    changed = found.changed
    other = sum(not (each.changed or each.same_hypothesis) for each in found.sentences)
    print(
        f"iteration {found.a} to {found.b}: {found.metric} {found.score_a:.4f} to "
        f"{found.score_b:.4f} ({found.score_b - found.score_a:+.4f})"
    )
    print(
        f"{len(found.sentences)} sentences with lists in both: the 1-best of {len(changed)} has "
        f"other words, of {other} the same words with other features"
    )
    if changed:
        better = sum(each.gain > 0.0 for each in changed)
        worse = sum(each.gain < 0.0 for each in changed)
        mean = sum(each.gain for each in changed) / len(changed)
        there = sum(each.was_there for each in changed)
        print(
            f"of these {len(changed)}, {better} are better by {found.sentence_metric}, {worse} "
            f"worse, mean change {mean:+.4f}; {there} were in the list of iteration {found.a}"
        )
    if found.sentences:
        overlap = sum(each.overlap for each in found.sentences) / len(found.sentences)
        shared = sum(each.shared for each in found.sentences)
        print(
            f"{shared} hypotheses are in both lists of their sentence: {100 * overlap:.1f}% of "
            "those in either, on average"
        )
    if not found.weights_known:
        print("the weights of one of them are not known, and count as 0")


def _print_features(found: IterationDifference) -> None:
    """Print the features, those that decided most first."""
    from mosesplug.cli.shared.tables import print_blocks
    from mosesplug.results.views.iterations import FeatureChange

    ordered = sorted(found.features, key=lambda each: -max(abs(each.lead_a), abs(each.lead_b)))
    print(
        f"features, and what they add to the lead of the new over the old 1-best, summed over "
        f"{len(found.changed)} sentences:"
    )
    labels = {"weight_a": f"weight {found.a}", "weight_b": f"weight {found.b}"}
    labels |= {"lead_a": f"lead at {found.a}", "lead_b": f"lead at {found.b}"}
    columns = "feature weight_a weight_b change values lead_a lead_b"
    table = tabulate(FeatureChange, ordered[:_FEATURES], columns, labels)
    lead_a = sum(each.lead_a for each in found.features)
    lead_b = sum(each.lead_b for each in found.features)
    every = ("all", "", "", "", "", f"{lead_a:+.4f}", f"{lead_b:+.4f}")
    print_blocks([replace(table, rows=[*table.rows, every])])
    if len(ordered) > _FEATURES:
        print(f"({len(ordered) - _FEATURES} more)")


def _print_changes(
    found: IterationDifference,
    title: str,
    sentences: Sequence[SentenceChange],
    text: ParallelText,
) -> None:
    if not sentences:
        return
    print(f"\n{title}:")
    for each in sentences:
        print(
            f"sentence {each.sentence}: {found.sentence_metric} {each.metric_a:.4f} to "
            f"{each.metric_b:.4f} ({each.gain:+.4f}), model {each.model_a:.4f} to "
            f"{each.model_b:.4f}, lead {each.lead_a:+.4f} and {each.lead_b:+.4f}, {each.shared} "
            f"hypotheses in both lists of {each.hypotheses_a} and {each.hypotheses_b}"
        )
        lines = [
            ("source", text.source_sentence(each.sentence)),
            *(("reference", line) for line in text.reference_sentences(each.sentence)),
            (str(found.a), each.text_a),
            (str(found.b), each.text_b),
        ]
        for name, line in lines:
            if line is not None:
                print(f"  {name:9}  {line}")
