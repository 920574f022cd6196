"""``mosesplug nbest ls``, ``grep`` and ``stats``.

They print iterations, texts and statistics of a store.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mosesplug.cli.shared.parameters import (
    IterationOption,
    Json,
    References,
    SentenceIdsOfLines,
    Source,
    Store,
    parse_iteration,
)
from mosesplug.errors import UsageError, count_noun

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mosesplug.results.views.list_statistics import IterationSummary
    from mosesplug.results.views.search import SearchField

_SHOWN_IDS = 5
_COLUMNS = (
    "number date sentences hypotheses new_hypotheses graphs stored_bytes change score oracle "
    "optimum"
)


def ls(
    store: Store,
    oracle: Annotated[
        bool,
        typer.Option("--oracle/--no-oracle", help="Score the oracle, which reads all lists once."),
    ] = True,
    json: Json = False,
) -> None:
    """List the iterations of a store: their lists, size and scores.

    The date is when the lists were stored, in local time (UTC with --json). The oracle of all lists
    so far is found by a greedy search for the corpus, and its score is kept in the store. Change is
    the largest difference between the weights that an iteration was decoded with and those that it
    found, whose score in the merged lists follows.

    Example: mosesplug nbest ls tuning
    """
    from mosesplug.cli.shared.output import print_json, progress_bar
    from mosesplug.results.views.list_statistics import summarize_iterations
    from mosesplug.results.views.run import open_run

    with open_run(store) as run:
        summaries = []
        with progress_bar(json) as progress:
            for summary in summarize_iterations(run, oracles=oracle):
                summaries.append(summary)
                progress(len(summaries), len(run.records), "iterations")
        if json:
            found: dict[str, Any] = {"store": str(run.path), "signature": run.signature}
            if run.store.sentence_ids:
                found["sentence_ids"] = list(run.store.sentence_ids)
            print_json({**found, "iterations": [asdict(each) for each in summaries]})
        else:
            _print_iterations(summaries, run.metric_name)
            if ids := [run.name_sentence(n) for n in range(len(run.store.sentence_ids))]:
                rest = ", ..." if len(ids) > _SHOWN_IDS else ""
                print(f"sentence ids: {', '.join(ids[:_SHOWN_IDS])}{rest}")


def _print_iterations(summaries: Sequence[IterationSummary], metric: str) -> None:
    """Print a table without columns that are empty or 0 in all iterations."""
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.results.render.record import tabulate
    from mosesplug.results.views.list_statistics import IterationSummary

    table = tabulate(IterationSummary, summaries, _COLUMNS, {"score": metric})
    columns = zip(*table.plain, strict=True)
    kept = [column for column in columns if any(cell not in ("", "0") for cell in column[1:])]
    head, *rows = zip(*kept, strict=True)
    print_table(head, rows)


def grep(
    store: Store,
    pattern: Annotated[
        str, typer.Argument(metavar="PATTERN", help="A regular expression of Python.")
    ],
    fields: Annotated[
        str | None,
        typer.Option(
            "--in",
            metavar="FIELD,...",
            help="Fields to search: source, reference, hypothesis, feature [all known].",
        ),
    ] = None,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", "-i", help="Ignore the case of ASCII letters.")
    ] = False,
    most: Annotated[
        int | None, typer.Option("--max", min=1, help="Stop after this number of hits.")
    ] = None,
    source: Source = None,
    refs: References = None,
    ids: SentenceIdsOfLines = None,
    json: Json = False,
) -> None:
    """Print every text in which a pattern occurs.

    Columns: sentence, field, number, text. Hypotheses are the distinct texts of
    all iterations. Searching source and reference requires
    --source and --refs. The exit code is 1 if there is no hit, as with grep.

    Example: mosesplug nbest grep tuning 'house|home' --in hypothesis
    """
    from mosesplug.cli.shared.layouts import TableLayout, current_layout
    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_lines, print_table
    from mosesplug.results.views.run import open_run
    from mosesplug.results.views.search import search_run
    from mosesplug.results.views.texts import ParallelText

    wanted = _parse_fields(fields, source, refs)
    try:
        compiled = re.compile(
            pattern.encode("utf-8", "surrogateescape"), re.I if ignore_case else 0
        )
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}") from None
    hits, rows, count = [], [], 0
    with open_run(store, with_lists="hypothesis" in wanted) as run:
        text = ParallelText.read(source, refs, run.store, ids)
        for hit in search_run(run, compiled, text, wanted):
            sentence = "-" if hit.sentence is None else run.name_sentence(hit.sentence)
            row = (sentence, hit.field, str(hit.number), hit.text)
            if json:
                hits.append(asdict(hit))
            elif current_layout() is TableLayout.TEXT:
                print_lines([row])
            else:
                rows.append(row)
            count += 1
            if count == most:
                break
    if json:
        print_json(hits)
    elif rows:
        print_table(("sentence", "field", "number", "text"), rows, left=2, last=1)
    if not count:
        raise typer.Exit(1)


def _parse_fields(
    fields: str | None, source: Path | None, refs: Path | None
) -> Sequence[SearchField]:
    from mosesplug.results.views.search import FIELDS

    if fields is None:
        return FIELDS
    wanted = fields.split(",")
    if unknown := [name for name in wanted if name not in FIELDS]:
        raise UsageError(f"--in takes {', '.join(FIELDS)}, not {unknown[0]!r}")
    for name, option, path in (("source", "--source", source), ("reference", "--refs", refs)):
        if name in wanted and path is None:
            raise UsageError(f"--in {name} requires {option} FILE")
    return cast("list[SearchField]", wanted)


def stats(
    store: Store,
    iteration: IterationOption = "all",
    json: Json = False,
) -> None:
    """Print statistics of features, lists and oracles.

    Features are measured over the distinct hypotheses: spread is the mean standard deviation in a
    sentence, correlation that with the sentence score (BLEU+1 for BLEU), in a sentence. Lists are
    those of the iteration, or of the last. The last table shows the score of the greedy corpus
    oracle if only the first hypotheses of each list are allowed.

    Example: mosesplug nbest stats tuning
    """
    from mosesplug.cli.shared.output import print_json, progress_bar
    from mosesplug.cli.shared.tables import print_blocks, print_table
    from mosesplug.results.render.record import tabulate
    from mosesplug.results.render.tables import format_score
    from mosesplug.results.report.data import FeatureFacts
    from mosesplug.results.views.list_statistics import FeatureSums, measure_lists, read_batches
    from mosesplug.results.views.lists import measure_coverage
    from mosesplug.results.views.run import open_run

    selected = parse_iteration(iteration)
    with open_run(store, with_lists=True) as run:
        last = selected or run.records[-1].iteration
        sums = FeatureSums.zeros(len(run.names))
        with progress_bar(json) as progress:
            for batch in read_batches(run, selected):
                sums = sums.add(batch, run.metric)
                progress(int(batch.sentence_ids[-1]) + 1, run.n_sentences, "sentences")
        features, distinct = sums.facts(run.vector, run.names), sums.hypotheses
        with progress_bar(json) as progress:
            lists = None
            for lists in measure_lists(run, last):
                progress(lists.sentences, run.n_sentences, "lists")
        coverage = measure_coverage(run, last)
        name, n_sparse = run.metric_name, run.space.n_sparse
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
    print_blocks([tabulate(FeatureFacts, features)])
    hypotheses = count_noun(distinct, "distinct hypothesis")
    print(f"\n{hypotheses}, {count_noun(n_sparse, 'sparse feature')}")
    if lists is not None:
        print(
            f"iteration {last}: {lists.sentences} lists of {lists.shortest} to {lists.longest} "
            f"hypotheses, mean {lists.mean:.1f}; {100 * lists.distinct:.1f}% distinct texts, "
            f"{100 * lists.diversity:.1f}% distinct bigrams, {lists.words:.1f} words"
        )
    print()
    scores = zip(coverage.ranks, coverage.scores, strict=True)
    print_table(
        ("first", f"best {name}"), [(str(rank), format_score(score)) for rank, score in scores]
    )
