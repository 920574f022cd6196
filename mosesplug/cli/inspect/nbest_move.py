"""``mosesplug nbest export`` and ``import``: lists out of a store, and into one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from mosesplug.cli.inspect.inspecting import iteration_of
from mosesplug.cli.shared.parameters import Dense, IterationOption, Source, Store
from mosesplug.errors import UsageError

__all__ = ["export", "import_"]

_FORMATS = ("nbest", "extractor", "npz")
_NINE = 9


def export(
    store: Store,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to (.gz: compressed); of extractor, before .features.dat, .scores.dat.",
        ),
    ],
    layout: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="nbest|extractor|npz",
            help="Moses n-best lists, extractor files, or NumPy arrays.",
        ),
    ] = "nbest",
    iteration: IterationOption = "all",
    sentence: Annotated[
        list[int] | None, typer.Option(min=0, help="This sentence only; may be repeated.")
    ] = None,
    digits: Annotated[
        int,
        typer.Option(min=1, max=_NINE, help="Of n-best numbers; Moses prints 6, 9 lose nothing."),
    ] = _NINE,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Lists out of a store, of one iteration or of all, merged and without duplicates.

    The model scores of merged n-best lists are those of the run's result.

    Example: mosesplug nbest export tuning --iteration 3 -o list3.gz
    """
    import numpy as np

    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.inspection.exporting import export_arrays, export_extractor, export_lists
    from mosesplug.inspection.run import opened

    if layout not in _FORMATS:
        raise UsageError(f"--format is one of {', '.join(_FORMATS)}, not {layout!r}")
    chosen = iteration_of(iteration)
    with opened(store, with_lists=True) as run:
        sentences = sorted(set(sentence)) if sentence else list(range(run.n_sentences))
        if layout == "nbest":
            with progress_bar(quiet) as progress:
                for done in export_lists(run, output, chosen, sentences, digits):
                    progress(done, len(sentences), "sentences")
            return
        lists = run.store.batch(np.array(sentences), chosen)
        if layout == "npz":
            export_arrays(lists, run.signature, output)
            return
        files = [output.with_name(f"{output.name}.{kind}.dat") for kind in ("features", "scores")]
        export_extractor(lists, run.metric.name, *files)


def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE... STORE",
            help="n-best lists, one an iteration, or one working directory of mert-moses.pl; then "
            "the new store.",
        ),
    ],
    refs: Annotated[Path, typer.Option("--refs", help="The references: a file, or a prefix.")],
    source: Source = None,
    metric: Annotated[str, typer.Option(help="What to score with: BLEU, TER, ...")] = "BLEU",
    metric_settings: Annotated[
        str, typer.Option(help="Its settings, as reflen:closest,case:true.")
    ] = "",
    names: Annotated[
        str | None, typer.Option(help="Names of the values of unlabelled lists, comma-separated.")
    ] = None,
    dense: Dense = None,
    threads: Annotated[int, typer.Option(min=1, metavar="N")] = os.cpu_count() or 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Make a store of n-best lists that lie in files, to look at them as at any other.

    Of a working directory of mert-moses.pl, weights and results are taken over as well; of bare
    lists nobody knows the weights, and they are shown as 0.

    Example: mosesplug nbest import mert-work old.lmdb --refs dev.en --source dev.de
    """
    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.inspection.importing import found_lists, import_lists
    from mosesplug.learning.lists import list_dense_features
    from mosesplug.metrics import metric as find_metric

    *given, target = paths
    if not given:
        raise UsageError("name the lists, or a working directory, and behind them the new store")
    iterations = found_lists(given)
    new = not target.exists()
    scorer = find_metric(metric, metric_settings)
    reports = import_lists(
        iterations,
        target,
        metric=scorer,
        references=refs,
        source=source,
        names=None if names is None else names.split(","),
        dense=list_dense_features([each.path for each in iterations], dense),
        threads=threads,
    )
    try:
        with progress_bar(quiet) as progress:
            for report in reports:
                progress(report.iteration, len(iterations), "iterations")
                if not quiet:
                    print(
                        f"iteration {report.iteration}: {report.sentences} sentences, "
                        f"{report.hypotheses} hypotheses, {report.new_hypotheses} new, "
                        f"{scorer.name} {report.first_best_score:.4f}"
                    )
    except BaseException:
        if new:
            shutil.rmtree(target, ignore_errors=True)
        raise
