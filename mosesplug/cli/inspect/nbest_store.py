"""``mosesplug nbest``: export, import, verify, compact, copy and drop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from mosesplug.cli.inspect.store_options import (
    EXPORT_FORMATS,
    NbestCompactCommand,
    NbestCopyCommand,
    NbestDropCommand,
    NbestExportCommand,
    NbestImportCommand,
    NbestVerifyCommand,
)
from mosesplug.cli.shared.output import print_formats, progress_bar
from mosesplug.cli.shared.parameters import parse_iteration
from mosesplug.cli.shared.tables import print_record
from mosesplug.errors import DataError, UsageError, count_noun
from mosesplug.learning.lists.outside import find_metric_of, make_named_metrics
from mosesplug.metrics.protocol import needs_references
from mosesplug.results.views.exporting import (
    export_arrays,
    export_extractor,
    export_lists,
    export_rows,
)
from mosesplug.results.views.importing import find_iterations, import_lists
from mosesplug.results.views.maintenance import Verification, drop_iteration, verify_store
from mosesplug.results.views.run import open_run
from mosesplug.store import maintenance
from mosesplug.tuning.workdir.stores import find_store

_SUFFIXES = {f".{name}": name for name in EXPORT_FORMATS if name not in ("nbest", "extractor")}
_OTHER_SUFFIXES = (".json", ".npy", ".arrow", ".feather", ".xlsx", ".xml", ".yaml", ".trn", ".html")
_OTHER_COMPRESSIONS = (".bz2", ".xz", ".zst", ".zip", ".lzma")


def export(options: NbestExportCommand) -> None:
    """Write the lists of one iteration, or all merged lists."""
    output, digits = options.output, options.digits
    layout = _find_export_format(output, options.layout)
    selected = parse_iteration(options.iteration)
    chosen: list[int] | None = None
    if options.sentence:
        with open_run(options.store) as run:
            chosen = sorted({run.find_sentence(sentence) for sentence in options.sentence})
    if layout == "parquet":
        # Tables need the rooms of learning, which no other command of this module loads.
        from mosesplug.api.run import open_run as open_for_tables

        with progress_bar(options.quiet) as progress:
            table = open_for_tables(options.store).hypotheses(selected, chosen)
            table.to_parquet(output, progress=progress)
        return
    with open_run(options.store, with_lists=True) as run:
        sentences = chosen or list(range(run.n_sentences))
        if layout in ("npz", "extractor"):
            lists = run.store.batch(np.array(sentences), selected)
            if layout == "npz":
                export_arrays(lists, run.signature, output, run.store.sentence_ids)
            else:
                kinds = ("features", "scores")
                files = [output.with_name(f"{output.name}.{kind}.dat") for kind in kinds]
                export_extractor(lists, run.metric.name, *files)
            return
        with progress_bar(options.quiet) as progress:
            if layout == "nbest":
                steps = export_lists(run, output, selected, sentences, digits)
            else:
                steps = export_rows(run, output, layout, selected, sentences, digits)
            for done in steps:
                progress(done, len(sentences), "sentences")


def _find_export_format(output: Path, layout: str | None) -> str:
    """Return the format of an export, which the name of its file may say.

    Raises:
        UsageError: an unknown format, or one that differs from that of the name; the name is that
            of a format or a compression that no export has.
    """
    if layout is not None and layout not in EXPORT_FORMATS:
        raise UsageError(f"--format takes {', '.join(EXPORT_FORMATS)}, not {layout!r}")
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


def import_(options: NbestImportCommand) -> None:
    """Create a store of n-best lists, to inspect them."""
    *paths, target = options.paths
    if not paths:
        raise UsageError("name the lists or a working directory, then the new store")
    iterations = find_iterations(paths)
    settings = options.settings
    print_formats([iteration.path for iteration in iterations], settings, quiet=options.quiet)
    settings = replace(settings, source=options.source)
    if name := options.metric or next(iter(settings.score_names), None):
        settings.score_commands.check_use("metric", [name])
    outside = make_named_metrics(settings, fingerprints=True)
    scorer = find_metric_of(options.metric, options.metric_settings, outside)
    if needs_references(scorer) and options.refs is None:
        raise UsageError(f"{scorer.name} compares texts with references: give --refs FILE")
    reports = import_lists(
        iterations,
        target,
        metric=scorer,
        references=options.refs,
        source=options.source,
        settings=settings,
        threads=options.threads,
    )
    with progress_bar(options.quiet) as progress:
        for report in reports:
            progress(report.iteration, len(iterations), "iterations")
            if not options.quiet:
                print(
                    f"iteration {report.iteration}: {report.sentences} sentences, "
                    f"{report.hypotheses} hypotheses, {report.new_hypotheses} new, "
                    f"{scorer.name} {report.first_best_score:.4f}"
                )


def verify(options: NbestVerifyCommand) -> None:
    """Verify every record; the exit code is 1 if one is damaged."""
    state = Verification()
    with progress_bar(options.quiet or options.json) as progress:
        for state in verify_store(find_store(options.store)):
            progress(state.done, state.total, "sentences")
    print_record(replace(state, is_quiet=options.quiet))
    if state.faults:
        faults = count_noun(len(state.faults), "fault")
        iterations = count_noun(state.iterations, "iteration")
        raise DataError(f"{faults} in {iterations} of {options.store}")


def compact(options: NbestCompactCommand) -> None:
    """Replace a store by a copy of itself without free pages."""
    before, after = maintenance.compact(find_store(options.store))
    print(f"{before} bytes before, {after} after")


def copy(options: NbestCopyCommand) -> None:
    """Copy a store without free pages, even during a run."""
    size = maintenance.copy(find_store(options.store), options.target)
    print(f"{size} bytes in {options.target}")


def drop(options: NbestDropCommand) -> None:
    """Remove the newest iteration; a resumed run decodes it again."""
    place = find_store(options.store)
    changed = drop_iteration(place, options.iteration)
    print(f"iteration {options.iteration} is removed")
    for path in changed:
        print(f"{path} is {'set back' if path.exists() else 'removed'}")
    if (tuned := place.parent / "moses.ini").is_file() and changed:
        print(f"{tuned} still has the weights of the whole run: --continue rewrites it")
