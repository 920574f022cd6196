"""``mosesplug score``: score a translation by several metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from formats.pipes import PipeCopy, copy_pipes
from mosesplug.api.scoring import score as score_translation
from mosesplug.cli.inspect.score_options import ScoreCommand
from mosesplug.cli.shared.edits import print_edits
from mosesplug.cli.shared.layouts import TableLayout, current_layout
from mosesplug.cli.shared.output import print_formats, print_json, print_warnings
from mosesplug.cli.shared.tables import print_blocks, print_lines, print_table
from mosesplug.errors import UsageError
from mosesplug.results.render.record import tabulate
from mosesplug.results.render.tables import format_score
from mosesplug.results.scores.comparison import to_percent
from mosesplug.results.scores.scoring import MetricScore, Selection
from mosesplug.settings.lists import hint_at_tables, parse_column_names, split_names
from mosesplug.settings.scores import parse_score_sources


def score(options: ScoreCommand) -> None:
    """Score a translation: corpus scores, 95 % intervals and signatures."""
    settings, references = options.settings, options.references
    if not options.nbest and (options.rank is not None or options.oracle):
        raise UsageError("--rank and --oracle require --nbest")
    if not options.nbest and settings.first_given is not None:
        raise UsageError(f"--{settings.first_given} requires --nbest{hint_at_tables(settings)}")
    if options.nbest and options.errors is not None:
        raise UsageError("--errors requires a translation: rerank writes that of an n-best list")
    selection: Selection | None = None
    lists: Path | PipeCopy | None = None
    if options.nbest:
        selection = "oracle" if options.oracle else options.rank or 1
        (lists,) = copy_pipes([options.translation])
        print_formats([lists], settings, quiet=options.json)
    sources = parse_score_sources(options.scores or ())
    if options.refs is not None:
        references = [options.refs]
    if not references and not sources:
        raise UsageError("there are no references: give REF..., or --scores NAME=FILE")
    scores = score_translation(
        lists or options.translation,
        references or None,
        options.metric,
        scores=None if not sources else {source.key: source.paths for source in sources},
        select=selection,
        names=parse_column_names(settings.names),
        format=settings.format,
        columns=split_names(settings.columns, "columns"),
        word_scores=settings.word_scores,
        transform=settings.transform,
        ids=options.ids,
        errors=options.errors,
        samples=options.samples,
        seed=options.seed,
    )
    print_warnings(scores.warnings)
    shown = to_percent(scores) if options.percent else scores
    if options.json:
        print_json([_record(score, options.sentences) for score in shown])
    else:
        _print(shown, options.sentences)


def _record(score: MetricScore, sentences: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"metric": score.metric, "score": score.score}
    if score.interval is not None:
        record["interval"] = score.interval
    record["signature"] = score.signature
    if score.edits is not None:
        record["edits"] = asdict(score.edits)
    if sentences:
        record["sentences"] = score.sentences
        if score.ids:
            record["ids"] = score.ids
    return record


def _print(scores: Sequence[MetricScore], sentences: bool) -> None:
    if sentences:
        ids = scores[0].ids or [str(number) for number in range(len(scores[0].sentences))]
        head = ("sentence", *(score.metric for score in scores))
        columns = (map(format_score, score.sentences) for score in scores)
        rows = list(zip(ids, *columns, strict=True))
        if current_layout() is TableLayout.TEXT:
            print_lines([head, *rows])
            print()
        else:
            print_table(head, rows, left=1)
    print_blocks([tabulate(MetricScore, scores)])
    edits = [((score.metric,), score.edits) for score in scores if score.edits is not None]
    print_edits(("metric",), edits, scores[0].ids)
