"""``mosesplug compare``: test whether systems differ by more than chance."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.cli.shared.inputs import OUTPUT, SCORES
from mosesplug.cli.shared.parameters import (
    Errors,
    Json,
    Metrics,
    Percent,
    Quiet,
    References,
    Seed,
    SentenceIdsOfLines,
    Source,
)
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from mosesplug.results.analysis import SystemAnalysis
    from mosesplug.results.scores.alignments import EditCounts
    from mosesplug.results.scores.comparison import SystemScore


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM...",
            help="The baseline first: FILE,... or NAME=FILE,... or a working directory.",
        ),
    ],
    refs: References = None,
    metric: Metrics = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE,...",
            help="Scores from outside: a file a system, a number a sentence.",
        ),
        SCORES,
    ] = None,
    ids: SentenceIdsOfLines = None,
    decode: Annotated[
        bool,
        typer.Option("--decode", help="Decode tuning sets of runs with the result's weights."),
    ] = False,
    samples: Annotated[
        int, typer.Option(min=1, help="Bootstrap samples for intervals and p(boot).")
    ] = 1000,
    trials: Annotated[
        int, typer.Option(min=1, help="Trials of approximate randomization.")
    ] = 10_000,
    seed: Seed = 1,
    errors: Errors = None,
    percent: Percent = False,
    json: Json = False,
    analysis: Annotated[
        bool, typer.Option("--analysis", help="Analyze words, sentences, n-grams and examples.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the analysis as an HTML page."),
        OUTPUT,
    ] = None,
    frequency_text: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Text, or word<TAB>count, for word frequencies [the references].",
        ),
    ] = None,
    source: Source = None,
    ngrams: Annotated[int, typer.Option(min=0, metavar="N", help="N-grams in each table.")] = 10,
    examples: Annotated[int, typer.Option(min=0, metavar="N", help="Examples of each kind.")] = 5,
    quiet: Quiet = False,
) -> None:
    """Test whether systems differ from the first by more than chance.

    Several files of one system are runs with different optimizer seeds. A working directory stands
    for translations of the tuning set, one for each of its runs: those decoded with the weights of
    the result, or else, with a note, the last ones. --decode makes the missing ones.

    p(AR) is from approximate randomization (Riezler & Maxwell 2005), stratified for several runs
    (Clark et al. 2011). p(boot) and the 95 % interval of the difference are from the paired
    bootstrap, and wins is the share of its samples in which the system is better (Koehn 2004); all
    three are for systems of one run each. s_sel is the standard deviation over texts drawn from
    this one, s_opt that over the runs. For error rates (TER, WER, CER, MER, PER, CDER), less is
    better.

    --scores adds a metric that another program computed, such as COMET: one file for each
    translation, in their order. NAME=FILE,...:error is an error rate.

    --analysis and --html show how the systems differ, after compare-mt (Neubig et al. 2019). The
    first metric scores single sentences.

    Examples: mosesplug compare base=b1.en,b2.en,b3.en new=n1.en,n2.en,n3.en --refs test.en;
    mosesplug compare b.en n.en --scores COMET=b.comet,n.comet
    """
    from formats.references import read_references, reference_files
    from mosesplug.api.scoring import compare_all
    from mosesplug.cli.shared.edits import print_edits
    from mosesplug.cli.shared.output import check_output, print_warnings, progress_bar
    from mosesplug.learning.lists.outside import make_outside_metrics
    from mosesplug.results.scores.comparison import count_system_edits, parse_systems
    from mosesplug.results.scores.outside import attach_scores
    from mosesplug.results.scores.percent import to_percent
    from mosesplug.results.scores.scoring import DEFAULT_METRICS, prepare_metrics
    from mosesplug.results.scores.sentence_ids import arrange_systems
    from mosesplug.settings.scores import parse_score_sources

    if len(systems) < 2:
        raise UsageError("give two systems or more, the baseline first")
    named = parse_systems(systems, decode=decode)
    for note in (note for each in named for note in each.notes):
        print(f"note: {note}", file=sys.stderr)
    analyzed = analysis or html is not None
    for name, value in (("--source", source), ("--frequency-text", frequency_text)):
        if value is not None and not analyzed:
            raise UsageError(f"{name} requires --analysis or --html")
    sources = parse_score_sources(scores or ())
    if refs is None and not sources:
        raise UsageError("there are no references: give --refs FILE, or --scores NAME=FILE,...")
    if frequency_text is not None and refs is None:
        raise UsageError("--frequency-text requires --refs")
    inputs = [path for each in named for path in each.translations if isinstance(path, Path)]
    inputs += [path for each in sources for path in each.paths]
    inputs += [path for path in (source, frequency_text) if path is not None]
    inputs += [] if refs is None else reference_files(refs)
    check_output(html, "--html", inputs)
    compared = attach_scores(named, sources)
    outside = make_outside_metrics(sources)
    lines: Sequence[Sequence[bytes]] = [] if refs is None else read_references(refs)
    compared, lines = arrange_systems(compared, lines, ids, what=f"{refs}")
    metrics = metric or [*(DEFAULT_METRICS if lines else ()), *(each.name for each in outside)]
    found = None
    with progress_bar(quiet) as progress:
        if analyzed:
            from mosesplug.api.analysis import analyze_all

            # First, so that an error in its files shows before the tests, which take longer.
            found = analyze_all(
                compared,
                lines,
                metrics,
                outside,
                source=source,
                frequencies=frequency_text,
                ngrams=ngrams,
                examples=examples,
                progress=progress,
            )
        results = compare_all(
            compared,
            lines,
            metrics,
            outside,
            samples=samples,
            trials=trials,
            seed=seed,
            progress=progress,
        )
    print_warnings(results.warnings)
    if found is not None and html is not None:
        found.write_html(html, scores=results)
    facts = found.facts if found is not None and analysis else None
    shown = to_percent(results) if percent else results
    edits = []
    if errors is not None and lines:
        prepared = prepare_metrics(metrics, lines, outside)
        edits = count_system_edits(compared, prepared, lines, errors)
    if json:
        _print_json(shown, facts, edits)
    else:
        _print(shown)
        print_edits(("metric", "system"), edits)
        if facts is not None:
            _print_analysis(facts)


def _print_json(
    scores: Sequence[SystemScore],
    analysis: SystemAnalysis | None,
    edits: Sequence[tuple[tuple[str, str], EditCounts]],
) -> None:
    """Print a list of scores; with an analysis, a document of both."""
    from mosesplug.cli.shared.output import print_json

    found = dict(edits)
    records = [asdict(score) for score in scores]
    for record in records:
        if (counts := found.get((record["metric"], record["system"]))) is not None:
            record["edits"] = asdict(counts)
    if analysis is None:
        print_json(records)
    else:
        from mosesplug.results.render.analysis_tables import describe_analysis

        print_json({"scores": records, **describe_analysis(analysis)})


def _print_analysis(analysis: SystemAnalysis) -> None:
    import shutil

    from mosesplug.cli.shared.layouts import TableLayout, current_layout, output_stream
    from mosesplug.cli.shared.tables import print_blocks
    from mosesplug.results.render import analysis_tables

    match current_layout():
        case TableLayout.MARKDOWN:
            lines = analysis_tables.format_analysis_markdown(analysis)
        case TableLayout.LATEX:
            lines = analysis_tables.format_analysis_latex(analysis)
        case _:
            width = max(40, shutil.get_terminal_size().columns)
            print_blocks(analysis_tables.list_analysis(analysis, width))
            return
    for line in lines:
        print(line, file=output_stream())


def _print(scores: Sequence[SystemScore]) -> None:
    """Print the table, then the signatures."""
    from mosesplug.cli.shared.layouts import TableLayout, current_layout, output_stream
    from mosesplug.cli.shared.tables import print_blocks
    from mosesplug.results.render.analysis_tables import tabulate_systems

    signatures = dict.fromkeys(score.signature for score in scores)
    print_blocks([tabulate_systems(scores)])
    match current_layout():
        case TableLayout.MARKDOWN:
            lines = [f"`{signature}`" for signature in signatures]
        case TableLayout.LATEX:
            lines = [f"% {signature}" for signature in signatures]
        case _:
            lines = ["", *signatures]
    stream = output_stream() if current_layout() is TableLayout.LATEX else None
    print("\n".join(lines), file=stream)
