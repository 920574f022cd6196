"""``mosesplug score``: score a translation by several metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosesplug.cli.shared.inputs import REFERENCES
from mosesplug.cli.shared.parameters import (
    Errors,
    Json,
    Metrics,
    OutsideScores,
    Percent,
    Seed,
    SentenceIdsOfLines,
)
from mosesplug.cli.shared.setting_options import (
    add_parameters,
    make_list_parameters,
    print_formats,
    take_list_settings,
)
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from formats.pipes import PipeCopy
    from mosesplug.results.scores.scoring import MetricScore, Selection


def _score(
    translation: Annotated[
        Path, typer.Argument(metavar="HYP", help="The translation, one sentence a line.")
    ],
    references: Annotated[
        list[Path] | None,
        typer.Argument(metavar="REF...", help="References: files, or one prefix."),
        REFERENCES,
    ] = None,
    refs: Annotated[
        Path | None,
        typer.Option("--refs", help="References, as other commands name them: REF."),
        REFERENCES,
    ] = None,
    metric: Metrics = None,
    scores: OutsideScores = None,
    nbest: Annotated[
        bool, typer.Option("--nbest", help="HYP is an n-best list: score one of each.")
    ] = False,
    rank: Annotated[
        int | None, typer.Option(min=1, help="With --nbest, the rank to score [1].")
    ] = None,
    oracle: Annotated[
        bool, typer.Option("--oracle", help="With --nbest, score the greedy corpus oracle.")
    ] = False,
    ids: SentenceIdsOfLines = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Bootstrap samples for 95 % intervals; 0 for none.")
    ] = 1000,
    seed: Seed = 1,
    sentences: Annotated[
        bool, typer.Option("--sentences", help="Print sentence scores too, tab-separated.")
    ] = False,
    errors: Errors = None,
    percent: Percent = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Score a translation: corpus scores, 95 % intervals and signatures.

    Texts are scored as they are, tokens separated by blanks; tokenize:NAME tokenizes them as
    sacrebleu does. TER, WER, CER, MER, PER and CDER are error rates: less is better.
    normalize:lower+punct normalizes their text. Sentence scores of BLEU are BLEU+1 (Lin &
    Och 2004).

    Metrics: BLEU, CDER, CER, CHRF, MER, PER, TER (as in Moses), TER-SACREBLEU, WER, and those of
    plug-ins.

    --scores adds a metric that another program computed: a line for each sentence, or with --nbest
    for each hypothesis.

    Example: mosesplug score output.en dev.en --metric 'BLEU tokenize:13a' --metric 'CHRF beta:2'
    """
    from formats.pipes import copy_pipes
    from mosesplug.api.scoring import score as score_translation
    from mosesplug.cli.shared.output import print_json, print_warnings
    from mosesplug.results.scores.percent import to_percent
    from mosesplug.settings.lists import hint_at_tables, parse_column_names, split_names
    from mosesplug.settings.scores import parse_score_sources

    settings = take_list_settings(given)
    if not nbest and (rank is not None or oracle):
        raise UsageError("--rank and --oracle require --nbest")
    if not nbest and settings.first_given is not None:
        raise UsageError(f"--{settings.first_given} requires --nbest{hint_at_tables(settings)}")
    if nbest and errors is not None:
        raise UsageError("--errors requires a translation: rerank writes that of an n-best list")
    if rank is not None and oracle:
        raise UsageError("--rank and --oracle exclude each other")
    selection: Selection | None = None
    lists: Path | PipeCopy | None = None
    if nbest:
        selection = "oracle" if oracle else rank or 1
        (lists,) = copy_pipes([translation])
        print_formats([lists], settings, quiet=json)
    sources = parse_score_sources(scores or ())
    if refs is not None:
        if references:
            raise UsageError("REF... and --refs exclude each other")
        references = [refs]
    if not references and not sources:
        raise UsageError("there are no references: give REF..., or --scores NAME=FILE")
    found = score_translation(
        lists or translation,
        references or None,
        metric,
        scores=None if not sources else {each.key: each.paths for each in sources},
        select=selection,
        names=parse_column_names(settings.names),
        format=settings.format,
        columns=split_names(settings.columns, "columns"),
        word_scores=settings.word_scores,
        transform=settings.transform,
        ids=ids,
        errors=errors,
        samples=samples,
        seed=seed,
    )
    print_warnings(found.warnings)
    shown = to_percent(found) if percent else found
    if json:
        print_json([_record(each, sentences) for each in shown])
        return
    _print(shown, sentences)


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
    from mosesplug.cli.shared.edits import print_edits
    from mosesplug.cli.shared.layouts import TableLayout, current_layout
    from mosesplug.cli.shared.tables import print_blocks, print_lines, print_table
    from mosesplug.results.render.record import tabulate
    from mosesplug.results.render.tables import format_score
    from mosesplug.results.scores.scoring import MetricScore

    if sentences:
        ids = scores[0].ids or [str(number) for number in range(len(scores[0].sentences))]
        rows_of_scores = zip(*(each.sentences for each in scores), strict=True)
        head = ("sentence", *(each.metric for each in scores))
        of_sentences = [
            (name, *map(format_score, values))
            for name, values in zip(ids, rows_of_scores, strict=True)
        ]
        if current_layout() is TableLayout.TEXT:
            print_lines([head, *of_sentences])
            print()
        else:
            print_table(head, of_sentences, left=1)
    print_blocks([tabulate(MetricScore, scores)])
    edits = [((each.metric,), each.edits) for each in scores if each.edits is not None]
    print_edits(("metric",), edits, scores[0].ids)


_WITHOUT = ("ids", "dense", "drop-feature", "rename", "add-feature", "derive", "scores")
"""Settings of features, which are not used."""

score = add_parameters(_score, make_list_parameters(_WITHOUT))
