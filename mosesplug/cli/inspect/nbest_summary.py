"""``mosesplug nbest ls``, ``grep`` and ``stats``: the content of a store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import cast

import typer

from mosesplug.cli.inspect.store_options import NbestGrepCommand, NbestLsCommand, NbestStatsCommand
from mosesplug.cli.shared.layouts import TableLayout, current_layout
from mosesplug.cli.shared.output import note_weighting, progress_bar
from mosesplug.cli.shared.parameters import parse_iteration
from mosesplug.cli.shared.tables import print_lines, print_record
from mosesplug.errors import UsageError
from mosesplug.results.render.record import tabulate
from mosesplug.results.views.list_statistics import (
    FeatureSums,
    StoreListing,
    StoreStatistics,
    measure_lists,
    read_batches,
    summarize_iterations,
)
from mosesplug.results.views.lists import measure_coverage
from mosesplug.results.views.run import open_run
from mosesplug.results.views.search import FIELDS, SearchField, SearchHit, search_run
from mosesplug.results.views.texts import ParallelText


def ls(options: NbestLsCommand) -> None:
    """List the iterations of a store: their lists, size and scores."""
    with open_run(options.store) as run:
        iterations = []
        with progress_bar(options.json) as progress:
            for iteration in summarize_iterations(run, oracles=options.oracle):
                iterations.append(iteration)
                progress(len(iterations), len(run.records), "iterations")
        note_weighting(run)
        print_record(StoreListing.of_run(run, iterations))


def grep(options: NbestGrepCommand) -> None:
    """Print every text in which a pattern occurs."""
    wanted = _parse_fields(options)
    try:
        pattern = options.pattern.encode("utf-8", "surrogateescape")
        compiled = re.compile(pattern, re.I if options.ignore_case else 0)
    except re.error as error:
        raise UsageError(f"{options.pattern!r} is not a regular expression: {error}") from None
    hits: list[SearchHit] = []
    is_text = current_layout() is TableLayout.TEXT
    with open_run(options.store, with_lists="hypothesis" in wanted) as run:
        text = ParallelText.read(options.source, options.refs, run.store, options.ids)
        for hit in islice(search_run(run, compiled, text, wanted), options.most):
            hits.append(hit)
            if is_text:
                print_lines(tabulate(SearchHit, [hit]).plain[1:])
    if not is_text and (hits or options.json):
        print_record(hits)
    if not hits:
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
        note_weighting(run)
        last = selected or run.records[-1].iteration
        sums = FeatureSums.zeros(len(run.names))
        with progress_bar(options.json) as progress:
            for batch in read_batches(run, selected):
                sums = sums.add(batch, run.metric)
                progress(int(batch.sentence_ids[-1]) + 1, run.n_sentences, "sentences")
        with progress_bar(options.json) as progress:
            lists = None
            for lists in measure_lists(run, last):
                progress(lists.sentences, run.n_sentences, "lists")
        statistics = StoreStatistics(
            run.score_label,
            sums.facts(run.vector, run.names),
            run.space.n_sparse,
            sums.hypotheses,
            lists,
            measure_coverage(run, last),
        )
    print_record(statistics)
