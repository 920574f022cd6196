"""``mosesplug nbest``: export, import, verify, compact, copy and drop."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mosesplug.cli.shared.completion import complete_metrics, offer
from mosesplug.cli.shared.inputs import OUTPUT, Files
from mosesplug.cli.shared.parameters import (
    THREADS,
    IterationOption,
    Json,
    Quiet,
    References,
    Source,
    Store,
    Threads,
    parse_iteration,
)
from mosesplug.cli.shared.setting_options import (
    add_parameters,
    make_list_parameters,
    print_formats,
    take_list_settings,
)
from mosesplug.errors import DataError, UsageError, count_noun

_FORMATS = ("nbest", "jsonl", "tsv", "csv", "extractor", "npz", "parquet")
_SUFFIXES = {f".{name}": name for name in _FORMATS if name not in ("nbest", "extractor")}
_OTHER_SUFFIXES = (".json", ".npy", ".arrow", ".feather", ".xlsx", ".xml", ".yaml", ".trn", ".html")
_OTHER_COMPRESSIONS = (".bz2", ".xz", ".zst", ".zip", ".lzma")
_MAX_DIGITS = 9


def export(
    store: Store,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The output (.gz: compressed), or its prefix."
        ),
        OUTPUT,
    ],
    layout: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help=f"{', '.join(_FORMATS)} [by the name of FILE, or nbest].",
            autocompletion=offer(_FORMATS),
            show_default=False,
        ),
    ] = None,
    iteration: IterationOption = "all",
    sentence: Annotated[
        list[str] | None, typer.Option(help="Export this sentence only; may be repeated.")
    ] = None,
    digits: Annotated[
        int,
        typer.Option(min=1, max=_MAX_DIGITS, help="Digits of n-best numbers: 6 as Moses, 9 exact."),
    ] = _MAX_DIGITS,
    quiet: Quiet = False,
) -> None:
    """Write the lists of one iteration, or all merged lists.

    nbest is the format of Moses, npz has NumPy arrays. Sentence ids that are texts are written as
    they were imported. The model scores of merged n-best lists are those of the run's result.
    Tables (tsv, csv) have the id, the text and dense features; jsonl also sparse features and the
    model score. The extractor files are FILE.features.dat and FILE.scores.dat. Parquet needs
    pyarrow: install mosesplug[frames].

    Example: mosesplug nbest export tuning --iteration 3 -o list3.gz
    """
    import numpy as np

    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.results.views.exporting import (
        export_arrays,
        export_extractor,
        export_lists,
        export_rows,
    )
    from mosesplug.results.views.run import open_run

    layout = _find_export_format(output, layout)
    selected = parse_iteration(iteration)
    chosen: list[int] | None = None
    if sentence:
        with open_run(store) as run:
            chosen = sorted({run.find_sentence(each) for each in sentence})
    if layout == "parquet":
        from mosesplug.api.run import open_run as open_for_tables

        with progress_bar(quiet) as progress:
            table = open_for_tables(store).hypotheses(selected, chosen)
            table.to_parquet(output, progress=progress)
        return
    with open_run(store, with_lists=True) as run:
        sentences = chosen or list(range(run.n_sentences))
        if layout == "nbest":
            with progress_bar(quiet) as progress:
                for done in export_lists(run, output, selected, sentences, digits):
                    progress(done, len(sentences), "sentences")
            return
        if layout in ("jsonl", "tsv", "csv"):
            with progress_bar(quiet) as progress:
                for done in export_rows(run, output, layout, selected, sentences, digits):
                    progress(done, len(sentences), "sentences")
            return
        lists = run.store.batch(np.array(sentences), selected)
        if layout == "npz":
            export_arrays(lists, run.signature, output, run.store.sentence_ids)
            return
        files = [output.with_name(f"{output.name}.{kind}.dat") for kind in ("features", "scores")]
        export_extractor(lists, run.metric.name, *files)


def _find_export_format(output: Path, layout: str | None) -> str:
    """Return the format of an export, which the name of its file may say.

    Raises:
        UsageError: an unknown format, or one that differs from that of the name; the name is that
            of a format or a compression that no export has.
    """
    if layout is not None and layout not in _FORMATS:
        raise UsageError(f"--format takes {', '.join(_FORMATS)}, not {layout!r}")
    name = output.name.removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix in _OTHER_COMPRESSIONS:
        raise UsageError(
            f"{output}: only .gz is compressed: export it so, or through a pipe (-o -)"
        )
    if layout is None and suffix in _OTHER_SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise UsageError(
            f"{output}: no format for {suffix}: name the file {known}, or give --format"
        )
    named = _SUFFIXES.get(suffix)
    if named in ("npz", "parquet") and name != output.name:
        raise UsageError(f"{output}: {named} is compressed itself: leave .gz out")
    if named is not None and layout not in (None, named):
        raise UsageError(f"{output}: the name says {named}, but --format is {layout}")
    return layout or named or "nbest"


def _import(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE... STORE",
            help="One n-best file an iteration, or a working directory; the new store.",
        ),
        Files(("path", *OUTPUT.kinds)),
    ],
    refs: References = None,
    source: Source = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="The metric: BLEU, TER, ... [the first of --scores, or BLEU]",
            autocompletion=complete_metrics,
        ),
    ] = None,
    metric_settings: Annotated[
        str, typer.Option(help="Metric settings, as reflen:closest,case:true.")
    ] = "",
    threads: Threads = THREADS,
    quiet: Quiet = False,
    **given_settings: Any,
) -> None:
    """Create a store of n-best lists, to inspect them.

    Weights and results of a working directory of mert-moses.pl are imported as well. The weights
    of other lists are unknown and shown as 0. With --scores, the store holds these statistics
    instead of those of a metric of texts.

    Example: mosesplug nbest import mert-work old.lmdb --refs dev.en --source dev.de
    """
    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.learning.lists.outside import find_metric_of
    from mosesplug.results.views.importing import find_iterations, import_lists

    *given, target = paths
    if not given:
        raise UsageError("name the lists or a working directory, then the new store")
    iterations = find_iterations(given)
    settings = take_list_settings(given_settings)
    print_formats([each.path for each in iterations], settings, quiet=quiet)
    sources = settings.scores
    scorer = find_metric_of(metric, metric_settings, sources, fingerprints=True)
    if scorer.needs_texts and refs is None:
        raise UsageError(f"{scorer.name} compares texts with references: give --refs FILE")
    reports = import_lists(
        iterations,
        target,
        metric=scorer,
        references=refs,
        source=source,
        settings=settings,
        threads=threads,
    )
    with progress_bar(quiet) as progress:
        for report in reports:
            progress(report.iteration, len(iterations), "iterations")
            if not quiet:
                print(
                    f"iteration {report.iteration}: {report.sentences} sentences, "
                    f"{report.hypotheses} hypotheses, {report.new_hypotheses} new, "
                    f"{scorer.name} {report.first_best_score:.4f}"
                )


import_ = add_parameters(_import, make_list_parameters())


def verify(store: Store, json: Json = False, quiet: Quiet = False) -> None:
    """Verify every record; the exit code is 1 if one is damaged.

    All pages of the file are checked. Records are compared with their checksums (early versions
    wrote none) and decoded: every hypothesis that a list refers to is looked up, and all values
    must be numbers.

    Example: mosesplug nbest verify tuning
    """
    from mosesplug.cli.shared.layouts import TableLayout, current_layout
    from mosesplug.cli.shared.output import print_json, progress_bar
    from mosesplug.cli.shared.tables import print_blocks
    from mosesplug.results.render.record import tabulate
    from mosesplug.results.views.maintenance import RecordFault, Verification, verify_store
    from mosesplug.tuning.workdir.stores import find_store

    state = Verification()
    with progress_bar(quiet or json) as progress:
        for state in verify_store(find_store(store)):
            progress(state.done, state.total, "sentences")
    if json:
        print_json([asdict(fault) for fault in state.faults])
    elif current_layout() is TableLayout.TEXT:
        for fault in state.faults:
            where = "" if fault.sentence is None else f", sentence {fault.sentence}"
            print(f"iteration {fault.iteration}{where}: {fault.fault}")
    else:
        print_blocks([tabulate(RecordFault, state.faults)])
    if state.faults:
        faults = count_noun(len(state.faults), "fault")
        raise DataError(f"{faults} in {count_noun(state.iterations, 'iteration')} of {store}")
    if not (quiet or json):
        iterations = count_noun(state.iterations, "iteration")
        print(f"{iterations}, {count_noun(state.lists, 'list')}: no fault found")
        if state.without:
            print(
                f"{state.without} of {state.without + state.records} records have no checksum: an "
                "earlier version wrote them"
            )


def compact(store: Store) -> None:
    """Replace a store by a copy of itself without free pages.

    No other program may have it open when the copy is complete.

    Example: mosesplug nbest compact tuning
    """
    from mosesplug.store.maintenance import compact as compact_store
    from mosesplug.tuning.workdir.stores import find_store

    before, after = compact_store(find_store(store))
    print(f"{before} bytes before, {after} after")


def copy(
    store: Store,
    target: Annotated[Path, typer.Argument(metavar="DIR", help="The new store."), OUTPUT],
) -> None:
    """Copy a store without free pages, even during a run.

    Example: mosesplug nbest copy tuning /backup/tuning.lmdb
    """
    from mosesplug.store.maintenance import copy as copy_store
    from mosesplug.tuning.workdir.stores import find_store

    print(f"{copy_store(find_store(store), target)} bytes in {target}")


def drop(
    store: Store,
    iteration: Annotated[
        int, typer.Argument(min=1, metavar="ITERATION", help="The newest iteration of the store.")
    ],
) -> None:
    """Remove the newest iteration; a resumed run decodes it again.

    finished_step.txt beside the store is set back, and summary.json is removed. moses.ini stays
    until a resumed run writes it again. Older iterations cannot be dropped, since newer ones refer
    to their hypotheses.

    Example: mosesplug nbest drop tuning 7
    """
    from mosesplug.results.views.maintenance import drop_iteration
    from mosesplug.tuning.workdir.stores import find_store

    place = find_store(store)
    changed = drop_iteration(place, iteration)
    print(f"iteration {iteration} is removed")
    for path in changed:
        print(f"{path} is {'set back' if path.exists() else 'removed'}")
    if (tuned := place.parent / "moses.ini").is_file() and changed:
        print(f"{tuned} still has the weights of the whole run: --continue rewrites it")
