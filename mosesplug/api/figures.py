"""Figures of learned weights, and the report of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from formats.text import write_atomic
from mosesplug.api.keywords import spell_argument
from mosesplug.api.progress import Progress, open_progress
from mosesplug.api.run import Run
from mosesplug.api.wording import name_keywords
from mosesplug.errors import UsageError
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.features import FeatureSpace
from mosesplug.learning.optimize import OptimizeResult
from mosesplug.results.report.data import ReportData
from mosesplug.results.report.figures import check_figure, render_png, require_matplotlib
from mosesplug.results.report.fit_figures import FitData, check_fit_figure, draw_fit_figure
from mosesplug.results.report.gather import STEPS, gather_report_steps
from mosesplug.results.report.page import render_page
from mosesplug.results.views.importing import open_as_store
from mosesplug.results.views.list_statistics import measure_features
from mosesplug.results.views.lists import compute_error_surfaces
from mosesplug.results.views.run import open_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.settings.learning import LearningSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_fit", "report", "write_report"]

_SHOWN = 40
"""Largest number of weights to draw."""

_QUANTITIES = ("score", "loss", "objective")
"""Values that an algorithm may report for each step; a figure draws the first one present."""


def plot_fit(result: OptimizeResult, figure: str) -> Figure:
    """Return a figure of learned weights.

    Args:
        result: the weights and what they were learned from.
        figure: a name in ``report.fit_figures.FIT_FIGURES``.

    Raises:
        UsageError: there is no such figure, matplotlib is missing, or there are no data for it.
    """
    check_fit_figure(figure)
    problem, space = result.data.problem, result.data.space
    if figure in ("surfaces", "features") and (problem.source or problem.search):
        raise UsageError(f"these weights were learned from search graphs, which have no {figure}")
    learned = _divide_by_norm(result.learning.solution.weights, space)
    start = _divide_by_norm(result.data.start.weights, space)
    shown = _find_shown(space, learned)
    names = _name_columns(space)
    steps, quantity = _find_steps(result)
    metric = problem.metric
    report = ReportData(
        store="",
        metric=metric.name,
        sentence_metric=metric.sentence_metric,
        signature=result.data.signature,
        facts={},
        iterations=(),
        names=names[: space.n_dense],
    )
    if figure == "surfaces":
        surfaces = compute_error_surfaces(problem.tuning_set, metric, learned, report.names)
        report = replace(report, surfaces=surfaces)
    elif figure == "features":
        facts = measure_features([problem.tuning_set], metric, learned, report.names)
        report = replace(report, features=facts)
    return draw_fit_figure(
        figure,
        FitData(
            names=tuple(names[column] for column in shown),
            start=tuple(start[shown].tolist()),
            learned_weights=tuple(learned[shown].tolist()),
            steps=steps,
            quantity=metric.name if quantity == "score" else quantity,
            report=report,
        ),
    )


def _divide_by_norm(weights: NDArray[np.float64], space: FeatureSpace) -> NDArray[np.float64]:
    """Return weights divided by the L1 norm of the dense ones, if there are any."""
    norm = float(np.abs(weights[: space.n_dense] if space.n_dense else weights).sum())
    return weights / norm if norm > 0.0 else weights


def _find_shown(space: FeatureSpace, weights: NDArray[np.float64]) -> list[int]:
    """Return the dense columns and the largest sparse ones, as many as fit."""
    n_dense = min(space.n_dense, _SHOWN)
    sparse = space.n_dense + np.argsort(-np.abs(weights[space.n_dense :]), kind="stable")
    active = [column for column in sparse[: _SHOWN - n_dense].tolist() if weights[column] != 0.0]
    return [*range(n_dense), *active]


def _name_columns(space: FeatureSpace) -> tuple[str, ...]:
    """Return a name for each column: ``LM`` for a single value, ``TM_0`` for several."""
    return tuple(map(mark_invalid_utf8, space.labels))


def _find_steps(result: OptimizeResult) -> tuple[tuple[float, ...], str]:
    """Return what the algorithm recorded at each step, and its name."""
    history = result.learning.solution.history
    for quantity in _QUANTITIES:
        values = [step[quantity] for step in history if quantity in step]
        if values:
            return tuple(map(float, values)), quantity
    return (), ""


def report(
    run: Run | str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    figure: str | None = None,
    references: str | PathLike[str] | None = None,
    source: str | PathLike[str] | None = None,
    ids: bool | None = None,
    sentences: int = 5,
    sentence: int | None = None,
    dpi: int = 300,
    title: str | None = None,
    report_metrics: Sequence[str] = (),
    progress: Progress = None,
) -> Path:
    """Write one HTML page about a run: scores, weights, features, lists and sentences.

    Args:
        run: the run, its working directory, or its store. It is only read, and may be in progress.
        output: the file; None writes ``report.html``, or the figure's name with ``.png``.
        figure: write this figure as PNG instead of the page; see ``Run.plot`` for the names.
        references: file of the references, or their prefix; None leaves them out.
        source: file of the source sentences; None leaves them out.
        ids: whether lines of these files begin with sentence ids, as for ``optimize``.
        sentences: number of the worst and of the best sentences to show.
        sentence: the sentence whose search graph is drawn; None selects a small one.
        dpi: dots per inch of a PNG.
        title: title of the page; None names the working directory.
        report_metrics: names of metrics that the run did not optimize. The page has their scores
            of each iteration, which need ``references``, and plots of the trade-offs.
        progress: None, True for a bar, or a function that is called with the parts done,
            the number of parts, and a description.

    Returns:
        The path of the file.

    Raises:
        UsageError: there is no such figure, the run has no data for it, or matplotlib is missing
            (``mosesplug[report]``).
        StoreError: there is no store, or it cannot be read.
        DataError: the run has no finished iteration yet, or the source or the references are not
            those of the run.
        FormatError: the source or the references cannot be read.

    Example:
        >>> import mosesplug
        >>> mosesplug.report("mert-work", "page.html", sentences=1).name
        'page.html'
    """
    with name_keywords(LearningSettings, spell_argument):
        return write_report(
            run,
            output,
            figure=figure,
            references=references,
            source=source,
            ids=ids,
            sentences=sentences,
            sentence=sentence,
            dpi=dpi,
            title=title,
            report_metrics=report_metrics,
            progress=progress,
        )


def write_report(
    run: Run | str | PathLike[str],
    output: str | PathLike[str] | None,
    *,
    figure: str | None,
    references: str | PathLike[str] | None,
    source: str | PathLike[str] | None,
    ids: bool | None,
    sentences: int,
    sentence: int | None,
    dpi: int,
    title: str | None,
    report_metrics: Sequence[str],
    progress: Progress,
) -> Path:
    """Write one HTML page about a run.

    Arguments and errors are as for ``report``; messages have options.
    """
    if figure is not None:
        check_figure(figure)
    require_matplotlib()
    source_path = None if source is None else Path(source)
    reference_path = None if references is None else Path(references)
    where, store = (run.path, run.store) if isinstance(run, Run) else (run, None)
    with (
        open_as_store(Path(where), reference_path, source_path) as place,
        open_run(place, opened=store) as stored,
        open_progress(progress) as show_progress,
    ):
        with name_keywords(LearningSettings, spell_argument):
            text = ParallelText.read(source_path, reference_path, stored.store, ids)
        steps = gather_report_steps(stored, text, sentences, sentence, report_metrics)
        for done, data in enumerate(steps, start=1):  # noqa: B007 - the last one is complete
            show_progress(done, len(STEPS), "parts of the report")
    if figure is not None:
        path, content = Path(output or f"{figure}.png"), render_png(figure, data, dpi)
    else:
        path = Path(output or "report.html")
        page = render_page(data, title or f"Tuning in {where}")
        content = mark_invalid_utf8(page).encode()
    write_atomic(path, content)
    return path
