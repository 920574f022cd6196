"""``mosesplug nbest show`` and ``diff``: the hypotheses of one sentence."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer

from mosesplug.cli.inspect.inspecting import Refs, WeightsFile, iteration_of, texts_of, weights_of
from mosesplug.cli.inspect.nbest_diff import diff_iterations
from mosesplug.cli.shared.parameters import IterationOption, Json, Source, Store
from mosesplug.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from mosesplug.inspection.sentence import Hypothesis, Sentence, SortedBy

__all__ = ["diff", "show"]

SentenceNumber = Annotated[
    int, typer.Argument(metavar="SENTENCE", min=0, help="Line of the input, counted from 0.")
]

_BAR = 12
_COLOURS = ("red", "yellow", "cyan", "green", "bold green")


def show(
    store: Store,
    sentence: SentenceNumber,
    iteration: IterationOption = "all",
    top: Annotated[int, typer.Option(min=1, help="How many hypotheses.")] = 10,
    sort: Annotated[
        str, typer.Option(metavar="model|metric", help="What orders them, the largest first.")
    ] = "model",
    weights: WeightsFile = None,
    features: Annotated[
        bool,
        typer.Option("--features", help="What each feature adds to the score: weight times value."),
    ] = False,
    source: Source = None,
    refs: Refs = None,
    json: Json = False,
) -> None:
    """One sentence's hypotheses, with model score, metric, and the parts they play.

    On a terminal, words are coloured by the longest n-gram that a reference (--refs) has too.
    Hope and fear have the largest sum and difference of model score and metric; weights are
    divided by their L1 norm. Hypotheses that play a part are shown even below --top.

    Example: mosesplug nbest show tuning 7 --refs dev.en --source dev.de --features
    """
    from mosesplug.cli.shared.output import print_json
    from mosesplug.inspection.run import opened
    from mosesplug.inspection.sentence import sentence_of

    if sort not in ("model", "metric"):
        raise UsageError(f"--sort is model or metric, not {sort!r}")
    with opened(store, with_lists=True) as run:
        found = sentence_of(
            run,
            sentence,
            iteration=iteration_of(iteration),
            weights=weights_of(run, weights),
            texts=texts_of(source, refs),
            by=cast("SortedBy", sort),
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
        int | None,
        typer.Argument(metavar="SENTENCE", min=0, help="Line of the input, counted from 0."),
    ] = None,
    first: Annotated[
        str | None,
        typer.Argument(
            metavar="A",
            help="A hypothesis: its rank by model score, or 1-best, oracle, hope, fear [1-best].",
        ),
    ] = None,
    second: Annotated[str | None, typer.Argument(metavar="B", help="Another [oracle].")] = None,
    iterations: Annotated[
        tuple[int, int] | None,
        typer.Option(
            "--iterations", metavar="A B", help="Compare two iterations, not two hypotheses."
        ),
    ] = None,
    iteration: IterationOption = "all",
    weights: WeightsFile = None,
    source: Source = None,
    refs: Refs = None,
    top: Annotated[
        int,
        typer.Option(min=0, help="With --iterations: of sentences that gained or lost most."),
    ] = 5,
    json: Json = False,
) -> None:
    """Two hypotheses side by side, or two iterations, and the features that decide between them.

    Of hypotheses, features stand in the order of what they add to A's lead over B.

    Of iterations (--iterations 3 4), 1-best is the decoder's own translation, the first of its
    list. Shown are weights, whose 1-best changed, what that did to the metric, how much the lists
    share, and for each feature the sum over the sentences that changed of weight times difference
    of values: the lead of the new 1-best over the old, at the weights of both iterations.

    Example: mosesplug nbest diff tuning 7 1-best oracle --refs dev.en

    Example: mosesplug nbest diff tuning --iterations 3 4 --refs dev.en
    """
    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.inspection.run import opened
    from mosesplug.inspection.sentence import sentence_of

    if iterations is not None:
        if sentence is not None or weights is not None or iteration != "all":
            raise UsageError(
                "--iterations compares whole iterations, each at its own weights: leave SENTENCE, "
                "--iteration and --weights out"
            )
        diff_iterations(store, iterations, top=top, source=source, refs=refs, json=json)
        return
    if sentence is None:
        raise UsageError("name a SENTENCE, or two iterations: --iterations A B")
    with opened(store, with_lists=True) as run:
        found = sentence_of(
            run,
            sentence,
            iteration=iteration_of(iteration),
            weights=weights_of(run, weights),
            texts=texts_of(source, refs),
        )
    one, other = _wanted(found, first or "1-best"), _wanted(found, second or "oracle")
    rows = [
        (name, ours, theirs, added - taken)
        for name, ours, theirs, added, taken in _compared(found, one, other)
    ]
    rows.sort(key=lambda row: -abs(row[3]))
    if json:
        keys = ("feature", "a", "b", "lead")
        features = [dict(zip(keys, row, strict=True)) for row in rows]
        print_json(
            {"sentence": sentence, "a": asdict(one), "b": asdict(other), "features": features}
        )
        return
    _print_texts(found)
    _print_hypotheses(found, [one, other])
    print()
    print_table(
        ("feature", "A", "B", "A's lead"),
        [
            *(
                (name, f"{ours:g}", f"{theirs:g}", f"{lead:+.4f}")
                for name, ours, theirs, lead in rows
                if ours != theirs
            ),
            (
                "model score",
                f"{one.model:.4f}",
                f"{other.model:.4f}",
                f"{one.model - other.model:+.4f}",
            ),
        ],
        left=1,
    )


def _compared(
    found: Sentence, one: Hypothesis, other: Hypothesis
) -> list[tuple[str, float, float, float, float]]:
    """Name, both values, and what both add to the score, of every feature."""
    rows = list(
        zip(
            found.names,
            one.values,
            other.values,
            one.contributions,
            other.contributions,
            strict=True,
        )
    )
    for name in dict.fromkeys([*one.sparse, *other.sparse]):
        values = (one.sparse_values.get(name, 0.0), other.sparse_values.get(name, 0.0))
        rows.append((name, *values, one.sparse.get(name, 0.0), other.sparse.get(name, 0.0)))
    return rows


def _wanted(found: Sentence, which: str) -> Hypothesis:
    """The hypothesis that a word on the command line names.

    Raises:
        UsageError: there is none.
        DataError: the sentence has no list.
    """
    if not found.hypotheses:
        raise DataError(
            f"sentence {found.number} has no hypotheses, so there are no two to compare"
        )
    for each in found.hypotheses:
        if which in each.roles or which == str(each.rank):
            return each
    raise UsageError(
        f"sentence {found.number} has no hypothesis {which!r}: give 1-best, oracle, hope or fear, "
        f"or a rank from 1 to {len(found.hypotheses)}"
    )


def _print_texts(found: Sentence) -> None:
    if found.source is not None:
        print(f"source     {found.source}")
    for text in found.references:
        print(f"reference  {text}")
    if found.source is not None or found.references:
        print()


def _print_hypotheses(found: Sentence, shown: list[Hypothesis]) -> None:
    """A table; words in colour where a person looks at it and references are known."""
    from mosesplug.cli.shared.output import is_terminal
    from mosesplug.cli.shared.tables import print_table

    head = ["rank", "model", found.worth, "matches", "plays", "text"]
    rows = [
        [
            str(each.rank),
            f"{each.model:.4f}",
            f"{each.metric:.4f}",
            " ".join(f"{matched}/{total}" for matched, total in each.matches),
            ", ".join(each.roles),
            each.text,
        ]
        for each in shown
    ]
    if is_terminal() and found.references:
        print_table(head, _coloured(found, rows), last=2)
    else:
        print_table(head, rows, last=2)


def _coloured(found: Sentence, rows: list[list[str]]) -> Iterator[list[str | Text]]:
    """Rows whose last cell has each word in the colour of the longest n-gram that it is part of."""
    from rich.text import Text

    from mosesplug.inspection.sentence import matched_orders

    references = [text.split() for text in found.references]
    for row in rows:
        words = row[-1].split()
        orders = matched_orders(words, references)
        coloured = Text(" ").join(
            Text(word, style=_COLOURS[order]) for word, order in zip(words, orders, strict=True)
        )
        yield [*row[:-1], coloured]


def _print_contributions(found: Sentence, shown: list[Hypothesis]) -> None:
    """Weight times value as columns, one a hypothesis; bars beside the first."""
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
            _bar(parts[0].get(name, 0.0) / largest),
        )
        for name in names
    ]
    first = f"#{shown[0].rank} as bars"
    print_table(
        ("weight x value", *(f"#{each.rank}" for each in shown), first), rows, left=1, last=1
    )


def _bar(share: float) -> str:
    """A bar to the right for what raises the score, with a minus before it for what lowers it."""
    return ("-" if share < 0.0 else " ") + "#" * round(abs(share) * _BAR)
