"""``mosesplug nbest ls``, ``grep`` and ``stats``: the content of a store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, cast

import typer

from mosesplug.cli.inspect.store_options import NbestGrepCommand, NbestLsCommand, NbestStatsCommand
from mosesplug.cli.shared.layouts import TableLayout, current_layout
from mosesplug.cli.shared.output import print_json, progress_bar
from mosesplug.cli.shared.parameters import parse_iteration
from mosesplug.cli.shared.tables import print_blocks, print_lines, print_table
from mosesplug.errors import UsageError, count_noun
from mosesplug.results.render.record import tabulate
from mosesplug.results.render.tables import TextTable, format_score
from mosesplug.results.report.data import FeatureFacts, IterationFacts
from mosesplug.results.views.list_statistics import (
    FeatureSums,
    measure_lists,
    read_batches,
    summarize_iterations,
)
from mosesplug.results.views.lists import measure_coverage
from mosesplug.results.views.run import open_run
from mosesplug.results.views.search import FIELDS, SearchField, search_run
from mosesplug.results.views.texts import ParallelText

_SHOWN_IDS = 5
_FIGURES = "sentences hypotheses new_hypotheses graphs stored_bytes change score oracle optimum"


def ls(options: NbestLsCommand) -> None:
    """List the iterations of a store: their lists, size and scores."""
    with open_run(options.store) as run:
        summaries = []
        with progress_bar(options.json) as progress:
            for summary in summarize_iterations(run, oracles=options.oracle):
                summaries.append(summary)
                progress(len(summaries), len(run.records), "iterations")
        if options.json:
            document: dict[str, Any] = {"store": str(run.path), "signature": run.signature}
            if run.store.sentence_ids:
                document["sentence_ids"] = list(run.store.sentence_ids)
            keys = f"number {_FIGURES} date".split()
            document["iterations"] = [{key: getattr(one, key) for key in keys} for one in summaries]
            print_json(document)
            return
        columns = f"number date {_FIGURES}"
        table = tabulate(IterationFacts, summaries, columns, {"score": run.metric_name})
        print_blocks([_drop_unused_columns(table)])
        if ids := [run.name_sentence(n) for n in range(len(run.store.sentence_ids))]:
            more = ", ..." if len(ids) > _SHOWN_IDS else ""
            print(f"sentence ids: {', '.join(ids[:_SHOWN_IDS])}{more}")


def _drop_unused_columns(table: TextTable) -> TextTable:
    """Return a table without columns that are empty or 0 in all rows."""
    columns = zip(*table.plain, strict=True)
    kept = [column for column in columns if any(cell not in ("", "0") for cell in column[1:])]
    return TextTable(list(zip(*kept, strict=True)))


def grep(options: NbestGrepCommand) -> None:
    """Print every text in which a pattern occurs."""
    wanted = _parse_fields(options)
    try:
        pattern = options.pattern.encode("utf-8", "surrogateescape")
        compiled = re.compile(pattern, re.I if options.ignore_case else 0)
    except re.error as error:
        raise UsageError(f"{options.pattern!r} is not a regular expression: {error}") from None
    hits, rows, count = [], [], 0
    with open_run(options.store, with_lists="hypothesis" in wanted) as run:
        text = ParallelText.read(options.source, options.refs, run.store, options.ids)
        for hit in search_run(run, compiled, text, wanted):
            sentence = "-" if hit.sentence is None else run.name_sentence(hit.sentence)
            row = (sentence, hit.field, str(hit.number), hit.text)
            if options.json:
                hits.append(asdict(hit))
            elif current_layout() is TableLayout.TEXT:
                print_lines([row])
            else:
                rows.append(row)
            count += 1
            if count == options.most:
                break
    if options.json:
        print_json(hits)
    elif rows:
        print_table(("sentence", "field", "number", "text"), rows, left=2, last=1)
    if not count:
        raise typer.Exit(1)


def _parse_fields(options: NbestGrepCommand) -> Sequence[SearchField]:
    if options.fields is None:
        return FIELDS
    wanted = options.fields.split(",")
    if unknown := [name for name in wanted if name not in FIELDS]:
        raise UsageError(f"--in takes {', '.join(FIELDS)}, not {unknown[0]!r}")
    files = (("source", "--source", options.source), ("reference", "--refs", options.refs))
    for name, option, path in files:
        if name in wanted and path is None:
            raise UsageError(f"--in {name} requires {option} FILE")
    return cast("list[SearchField]", wanted)


def stats(options: NbestStatsCommand) -> None:
    """Print statistics of features, lists and oracles."""
    selected = parse_iteration(options.iteration)
    with open_run(options.store, with_lists=True) as run:
        last = selected or run.records[-1].iteration
        sums = FeatureSums.zeros(len(run.names))
        with progress_bar(options.json) as progress:
            for batch in read_batches(run, selected):
                sums = sums.add(batch, run.metric)
                progress(int(batch.sentence_ids[-1]) + 1, run.n_sentences, "sentences")
        features, distinct = sums.facts(run.vector, run.names), sums.hypotheses
        with progress_bar(options.json) as progress:
            lists = None
            for lists in measure_lists(run, last):
                progress(lists.sentences, run.n_sentences, "lists")
        coverage = measure_coverage(run, last)
        metric, n_sparse = run.metric_name, run.space.n_sparse
    if options.json:
        print_json(
            {
                "features": [asdict(feature) for feature in features],
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
    rows = [(str(rank), format_score(score)) for rank, score in scores]
    print_table(("first", f"best {metric}"), rows)
