"""``mosesplug nbest grep`` and ``stats``: what occurs in the lists, and what they are like."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated, cast

import typer

from mosesplug.cli.inspect.inspecting import Refs, iteration_of, texts_of
from mosesplug.cli.shared.parameters import IterationOption, Json, Source, Store
from mosesplug.errors import UsageError

__all__ = ["grep", "stats"]


def grep(
    store: Store,
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="A regular expression, as Python has them.")
    ],
    fields: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="FIELD,...",
            help="Where to look: source, reference, hypothesis, feature; the first two need "
            "--source and --refs [all that are there].",
        ),
    ] = None,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Of ASCII letters.")
    ] = False,
    most: Annotated[
        int | None, typer.Option("--max", min=1, help="End after so many hits.")
    ] = None,
    source: Source = None,
    refs: Refs = None,
    json: Json = False,
) -> None:
    """Every text in which a pattern occurs, one a line: sentence, field, number, text.

    Hypotheses are those of all iterations, each text once. As grep does, it ends with code 1 if
    there is no hit.

    Example: mosesplug nbest grep tuning 'house|home' --in hypothesis
    """
    from mosesplug.cli.shared.output import print_json
    from mosesplug.inspection.run import opened
    from mosesplug.inspection.search import FIELDS, Field, hits

    wanted = list(FIELDS) if fields is None else fields.split(",")
    if unknown := [name for name in wanted if name not in FIELDS]:
        raise UsageError(f"--in takes {', '.join(FIELDS)}, not {unknown[0]!r}")
    if fields is not None:
        for name, option, path in (("source", "--source", source), ("reference", "--refs", refs)):
            if name in wanted and path is None:
                raise UsageError(f"--in {name} needs the text: give {option} FILE, too")
    try:
        compiled = re.compile(
            pattern.encode("utf-8", "surrogateescape"), re.I if ignore_case else 0
        )
    except re.error as error:
        raise UsageError(f"{pattern!r} is no regular expression: {error}") from None
    found, count = [], 0
    with opened(store, with_lists="hypothesis" in wanted) as run:
        for hit in hits(run, compiled, texts_of(source, refs), cast("list[Field]", wanted)):
            if json:
                found.append(asdict(hit))
            else:
                place = "-" if hit.sentence is None else str(hit.sentence)
                print(f"{place}\t{hit.field}\t{hit.number}\t{hit.text}")
            count += 1
            if count == most:
                break
    if json:
        print_json(found)
    if not count:
        raise typer.Exit(1)


def stats(
    store: Store,
    iteration: IterationOption = "all",
    json: Json = False,
) -> None:
    """Features, list sizes, diversity, and how much better the lists could be.

    Feature statistics are over the distinct hypotheses: spread is the mean standard deviation in a
    sentence, correlation that with the metric of the hypothesis, in a sentence (BLEU+1 where the
    metric is BLEU). Lists are those of the iteration, or of the last. Coverage is the score of the
    best choice, by greedy search, if only the first hypotheses of each list are allowed.

    Example: mosesplug nbest stats tuning
    """
    from mosesplug.cli.shared.output import print_json, progress_bar
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.inspection.diversity import list_facts
    from mosesplug.inspection.features import FeatureSums, merged_parts
    from mosesplug.inspection.lists import coverage_by_rank
    from mosesplug.inspection.run import opened

    chosen = iteration_of(iteration)
    with opened(store, with_lists=True) as run:
        last = chosen or run.records[-1].iteration
        sums = FeatureSums.none(len(run.names))
        with progress_bar(json) as progress:
            for part in merged_parts(run, chosen):
                sums = sums.added(run, part)
                progress(int(part.sentence_ids[-1]) + 1, run.n_sentences, "sentences")
        features, distinct = sums.facts(run), sums.hypotheses
        with progress_bar(json) as progress:
            lists = None
            for lists in list_facts(run, last):
                progress(lists.sentences, run.n_sentences, "lists")
        coverage = coverage_by_rank(run, last)
        name = run.signature.partition("|")[0]
        n_sparse = run.space.n_sparse
    if json:
        print_json(
            {
                "features": [asdict(each) for each in features],
                "sparse_features": n_sparse,
                "distinct_hypotheses": distinct,
                "lists": None if lists is None else {"iteration": last, **asdict(lists)},
                "coverage": asdict(coverage),
            }
        )
        return
    rows = [
        (
            each.name,
            f"{each.weight:.4f}",
            f"{each.mean:.4g}",
            f"{each.spread:.4g}",
            f"{100 * each.active:.1f}%",
            "" if each.correlation != each.correlation else f"{each.correlation:+.3f}",
        )
        for each in features
    ]
    print_table(("feature", "weight", "mean", "spread", "active", "correlation"), rows, left=1)
    print(f"\n{distinct} distinct hypotheses, {n_sparse} sparse features")
    if lists is not None:
        print(
            f"iteration {last}: {lists.sentences} lists of {lists.shortest} to {lists.longest} "
            f"hypotheses, mean {lists.mean:.1f}; {100 * lists.distinct:.1f}% distinct texts, "
            f"{100 * lists.diversity:.1f}% distinct bigrams, {lists.words:.1f} words"
        )
    print()
    print_table(
        ("first", f"best {name}"),
        [
            (str(rank), f"{score:.4f}")
            for rank, score in zip(coverage.ranks, coverage.scores, strict=True)
        ],
    )
