"""Look at a run: its iterations, weights, hypotheses, figures and report."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from html import escape
from os import PathLike, fspath
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formats.moses.ini import read_moses_ini
from formats.text import StrPath, write_atomic
from mosesplug.api.initial_weights import InitialWeights
from mosesplug.api.keywords import LEARNING, RUN
from mosesplug.api.lists.arrays import FeatureArrays
from mosesplug.api.lists.nbest import NBest, make_block
from mosesplug.api.numbers import check_declared, check_integer
from mosesplug.api.progress import Progress, open_progress
from mosesplug.api.reranking import load_weights
from mosesplug.api.run_comparisons import Explanation, WeightEffect
from mosesplug.api.run_page import RunPage
from mosesplug.api.tables.hypotheses import tabulate_hypotheses
from mosesplug.api.tables.records import tabulate_records
from mosesplug.api.tables.table import Table
from mosesplug.api.weights import WeightTable
from mosesplug.cores import usable_cores
from mosesplug.errors import StoreError, StoreInUse, UsageError, count_noun
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.features import FeatureSpace
from mosesplug.metrics import Metric
from mosesplug.metrics.error_rates import display_score, is_error_rate, label_metric
from mosesplug.results.report.data import HeldOutScore, IterationFacts, ReportedScore
from mosesplug.results.report.figures import (
    GRAPH_FIGURES,
    check_figure,
    render_png,
    require_matplotlib,
)
from mosesplug.results.report.gather import gather_figure
from mosesplug.results.report.runs import RunSource, render_runs
from mosesplug.results.views.first_bests import compare_first_bests
from mosesplug.results.views.hypotheses import read_hypotheses
from mosesplug.results.views.list_statistics import (
    list_held_out_scores,
    list_reported_scores,
    summarize_iterations,
)
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.run import open_run as open_stored_run
from mosesplug.results.views.sentence import compare_hypotheses, read_sentence
from mosesplug.results.views.texts import ParallelText
from mosesplug.results.weights.sources import arrange_by_group
from mosesplug.settings.report import ReportSettings
from mosesplug.settings.sentences.weights import describe_weights
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.stores import find_run
from mosesplug.tuning.workdir.summary import StoredSummary
from mosesplug.tuning.workdir.workspace import Workspace
from mosesplug.tuning_set import SparseRows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ITERATIONS = (
    "iteration=number date sentences hypotheses new_hypotheses graphs stored_bytes change score "
    "optimum"
)
_SCORES = (
    "iteration=number score optimum oracle held_out hypotheses new_hypotheses seconds_decoding "
    "seconds_optimizing"
)


@RUN.in_messages()
def open_run(working_dir: StrPath, run: int | None = None) -> Run:
    """Open a run for reading, also while another process is running it.

    The process that runs it can open it when it has ended; ``Tuner.run`` reads it before.

    Args:
        working_dir: the working directory, or the store in it.
        run: the number of the run, if the directory holds several (``runs=5``). None opens the
            run whose weights are the result.

    Raises:
        StoreError: there is no store, or it cannot be read, or this process is running it.
        DataError: the run has no finished iteration yet.
        UsageError: there is no run of this number, or none was chosen.

    Example:
        >>> import mosesplug
        >>> run = mosesplug.open_run("mert-work")
        >>> run.metric, len(run.iterations), run.is_finished
        ('BLEU', 2, False)
        >>> run.nbest(sentence=1).texts
        ['she sees one dog', 'she sees a small dog', 'she sees a small dog today']
    """
    path = find_run(Path(working_dir), run)
    try:
        return read_run(path)
    except StoreInUse as error:
        raise StoreError(
            f"the run in {path} is open in this process: read it through the `run` of its Tuner,"
            " after it has ended, or in another process"
        ) from error


def read_run(path: Path, store: NBestStore | None = None) -> Run:
    """Return a run that has a finished iteration.

    Args:
        path: the store, or the directory that holds it.
        store: see ``Run``.

    Raises:
        StoreError, DataError: as for ``open_run``.
    """
    with open_stored_run(path, opened=store) as stored:
        return Run(stored.path, store)


@dataclass(frozen=True, repr=False)
class Run:
    """A run that is open for reading; ``open_run`` and ``tune`` return one.

    The store is opened for each access and closed again. A run that is still running can be looked
    at: every access shows the iterations that are finished at that moment.

    Attributes:
        path: the path of the store.
        store: the store, if a ``Tuner`` of this process has it open: a process cannot open a store
            twice. None, or if it is closed: the store is opened for each access.

    Example:
        >>> import mosesplug
        >>> run = mosesplug.open_run("mert-work")
        >>> run.weights(2)
        feature  weight
        LM0      0.2
        TM0      0.6
        >>> run.best["iteration"], run.best["score"]
        (2, 1.0)
        >>> for row in run.hypotheses(sentences=[1]):
        ...     print(row["iteration"], row["rank"], row["text"])
        1 1 she sees one dog
        1 2 she sees a small dog
        2 1 she sees a small dog today
        >>> run.plot("weights").savefig("weights.png")
    """

    path: Path
    store: NBestStore | None = field(default=None, compare=False)

    @property
    def metric(self) -> str:
        """Name of the metric that the run optimizes."""
        with self._open() as stored:
            return stored.metric_name

    @property
    def signature(self) -> str:
        """Signature of the metric, which makes scores reproducible."""
        with self._open() as stored:
            return stored.signature

    @property
    def sentence_weights(self) -> NDArray[np.float64] | None:
        """The weight of each source sentence, float64 ``[n_sentences]``; None: 1 each.

        Corpus scores of the run's lists count them.
        """
        with self._open() as stored:
            return stored.store.sentence_weights

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended and written its result, ``moses.ini``."""
        workspace = Workspace(self.path.parent, 0)
        if workspace.store != self.path or not workspace.summary.is_file():
            return False
        with self._open() as stored:
            # A run that was continued has the summary of its earlier end.
            summarized = StoredSummary.read(workspace.summary).document["iterations"]
            return len(summarized) == len(stored.records)

    @property
    def iterations(self) -> Table:
        """The finished iterations, as in ``mosesplug nbest ls --json``, without oracles.

        Scores of error rates are 1 minus the rate here, so that larger is better.

        Columns: iteration; date (UTC, ISO 8601); sentences, hypotheses, new_hypotheses, graphs,
        stored_bytes; change, the largest difference between the weights that it was decoded with
        and those that it found; score of the decoder's translations; optimum, the score that the
        optimizer reached in the merged lists.
        """
        with self._open() as stored:
            rows = list(summarize_iterations(stored, oracles=False))
        return tabulate_records(IterationFacts, rows, _ITERATIONS)

    @property
    def held_out(self) -> Table:
        """The scores of the held-out set and of the monitors: one row for each decoding.

        Columns: iteration; updates, the number of iterations (online: of mini-batches) before the
        decoding; text, ``held out`` or the name of the monitor; score. A run without either has no
        rows.
        """
        with self._open() as stored:
            rows = list(list_held_out_scores(stored))
        return tabulate_records(HeldOutScore, rows)

    @property
    def reported(self) -> Table:
        """The scores by metrics that the run reports, not optimizes.

        These are its ``report_metrics``. Scores of error rates are 1 minus the rate here, so that
        larger is better.

        Columns: iteration; updates, the number of iterations (online: of mini-batches) before the
        decoding; text, ``tuning set``, ``held out`` or the name of a monitor; metric; score. A run
        without such metrics has no rows.
        """
        with self._open() as stored:
            rows = list(list_reported_scores(stored))
        return tabulate_records(ReportedScore, rows)

    @property
    def best(self) -> dict[str, Any]:
        """The row of ``iterations`` with the highest score; of equal ones, the first."""
        return max(self.iterations, key=lambda row: row["score"])

    @RUN.in_messages()
    def weights(self, iteration: int | None = None) -> WeightTable:
        """Return weights, not normalized.

        Args:
            iteration: the iteration, for the weights that it was decoded with. None returns the
                result, those of ``moses.ini``; of a run that is not finished, the newest weights.

        Raises:
            DataError: there is no such iteration.
        """
        with self._open() as stored:
            weights = stored.weights if iteration is None else stored.decoding_weights(iteration)
            groups = [(g.name, len(g.values)) for g in arrange_by_group(stored).groups]
            sparse = dict.fromkeys([*stored.space.sparse, *weights.sparse])
            # Runs whose lists are in the stores of shards may have no names yet.
            space = FeatureSpace(tuple(groups or [(n, 1) for n in stored.names]), tuple(sparse))
        config = None
        if self.is_finished and (tuned := Workspace(self.path.parent, 0).tuned_config).is_file():
            config = read_moses_ini(tuned)
        return WeightTable(space, weights.vector(space), config=config)

    @RUN.in_messages()
    def nbest(self, sentence: int | None = None, iteration: int | None = None) -> NBest:
        """Return n-best lists as arrays, in memory.

        Args:
            sentence: the sentence id; None for all sentences.
            iteration: as for ``hypotheses``.

        Raises:
            DataError: there is no such iteration or sentence, or the run has no lists.
        """
        with self._open(with_lists=True) as stored:
            wanted = range(stored.n_sentences) if sentence is None else [sentence]
            batch = read_hypotheses(stored, wanted, iteration)
            space = stored.space
        sparse = batch.sparse or SparseRows.empty(len(batch.texts))
        features = FeatureArrays(space, batch.dense, sparse, np.arange(len(space)))
        return NBest.of_block(
            make_block(batch.sentences, batch.texts, features, batch.model_scores)
        )

    @RUN.in_messages()
    def scores(self, *, oracles: bool = True) -> Table:
        """Return the scores and times of the iterations; of error rates, 1 minus the rate.

        Columns: iteration; score of the decoder's translations; optimum, the score that the
        optimizer reached in the merged lists; oracle, the score of the greedy corpus oracle of all
        lists so far; held_out, the best held-out score of the iteration; hypotheses,
        new_hypotheses; seconds_decoding, seconds_optimizing.

        Args:
            oracles: compute the oracles, which reads all hypotheses.
        """
        with self._open() as stored:
            rows = (
                gather_figure(stored, "scores").iterations
                if oracles
                else tuple(summarize_iterations(stored, oracles=False))
            )
        return tabulate_records(IterationFacts, rows, _SCORES)

    @RUN.in_messages()
    def importance(self, *, top: int = 20, threads: int | None = None) -> Table:
        """Return how much each feature matters, the largest influence first.

        Columns: feature; weight, over the L1 norm of the dense ones; spread, the mean standard
        deviation of its values within a list; influence, absolute weight times spread; kept_loss,
        the score of the merged lists that is lost without the feature if the other weights are
        kept; learned_loss, the same if MERT learns the weights of the dense ones again.

        Args:
            top: number of sparse features that have a row of their own, besides one of all.
            threads: threads of learning; None: one for each core.

        Raises:
            DataError: the run has no lists or no weights.
        """
        from mosesplug.results.views.importance import FeatureImportance, measure_importance

        with self._open(with_lists=True) as stored:
            *_, importance = measure_importance(stored, top=top, threads=threads or usable_cores())
        return tabulate_records(FeatureImportance, importance.features)

    def hypotheses(
        self, iteration: int | None = None, sentences: Sequence[int] | None = None
    ) -> Table:
        """Return stored hypotheses, one in each row, sorted by sentence.

        Columns: iteration, and the sentence id; rank in that iteration's list, from 1; text;
        model_score, the decoder's; sentence_score, of the metric (BLEU+1 for BLEU); the value of
        each dense feature under its name; sparse, if the run has sparse features; the metric's
        sufficient statistics as statistic0, statistic1 and so on.

        Args:
            iteration: the iteration, whose lists are returned as the decoder gave them. None
                returns each distinct hypothesis of all iterations once, with the iteration, rank
                and model score of its first appearance.
            sentences: the sentence ids; None for all.

        Raises:
            DataError: there is no such iteration or sentence, or the run has no lists.
        """
        return tabulate_hypotheses(
            partial(self._open, with_lists=True), self.path, iteration, sentences
        )

    @RUN.in_messages()
    def explain(
        self,
        sentence: int | str,
        a: int | str = "1-best",
        b: int | str = "oracle",
        *,
        weights: InitialWeights | None = None,
        iteration: int | None = None,
        source: StrPath | None = None,
        references: StrPath | None = None,
        ids: bool | None = None,
    ) -> Explanation:
        """Return which features make a hypothesis of a sentence win over another one.

        Args:
            sentence: its number from 0, or its id.
            a, b: ranks by model score, from 1; or ``"1-best"``, ``"oracle"``, ``"hope"``,
                ``"fear"``.
            weights: the weights of the model score, as for ``rerank``; None: the run's result.
            iteration: the lists of this iteration; None: all lists, merged.
            source, references: files of the tuning set, whose lines are shown.
            ids: whether these lines begin with sentence ids; None: if they look so.

        Raises:
            UsageError: ``sentence`` is not a number from 0 or a known id, or there is no such
                hypothesis.
            DataError: the run has no lists or no such sentence, or the sentence has no hypotheses.
            StoreError: there is no such iteration.
            FormatError: a file of weights cannot be read.
        """
        with self._open(with_lists=True) as stored:
            hypotheses = read_sentence(
                stored,
                stored.find_sentence(str(sentence)),
                iteration=iteration,
                weights=_name_weights(stored, weights)[1],
                text=_read_text(stored, source, references, ids),
            )
            pair = hypotheses.find(str(a)), hypotheses.find(str(b))
        return Explanation(compare_hypotheses(hypotheses, *pair))

    @RUN.in_messages()
    def compare_weights(
        self,
        a: InitialWeights,
        b: InitialWeights | None = None,
        *,
        sentence: int | str | None = None,
        iteration: int | None = None,
        source: StrPath | None = None,
        references: StrPath | None = None,
        ids: bool | None = None,
        top: int = 5,
    ) -> WeightEffect:
        """Return which sentences have another 1-best at other weights, and why.

        Args:
            a, b: the weights, as for ``rerank``, such as ``run.weights(1)``; None: the run's
                result.
            sentence: the only sentence; None: all.
            iteration, source, references, ids: as for ``explain``.
            top: the most sentences that are printed, of those that gain, of those that lose, and of
                those that keep their score.

        Raises:
            UsageError: ``sentence`` is not a number from 0 or a known id.
            DataError: the run has no lists or no such sentence, or the sentence has no hypotheses.
            StoreError: there is no such iteration.
            FormatError: a file of weights cannot be read.
        """
        top = check_integer(top, "top", 0)
        with self._open(with_lists=True) as stored:
            difference = compare_first_bests(
                stored,
                [_name_weights(stored, side) for side in (a, b)],
                sentence=None if sentence is None else stored.find_sentence(str(sentence)),
                iteration=iteration,
                text=_read_text(stored, source, references, ids),
                top=top,
            )
        return WeightEffect(difference)

    @RUN.in_messages()
    def plot(self, figure: str = "scores", *, sentence: int | None = None) -> Figure:
        """Return a matplotlib figure of the report; notebooks show it.

        ``savefig`` writes it to a file.

        Args:
            figure: scores, weights, features, surfaces, growth, coverage, times, lattice or
                envelope.
            sentence: the sentence whose search graph lattice and envelope show; None selects a
                small one.

        Raises:
            UsageError: there is no such figure, the run has no data for it, or matplotlib is
                missing (``mosesplug[report]``).
        """
        from mosesplug.results.report.figures import draw_figure

        check_figure(figure)
        with self._open() as stored:
            data = gather_figure(stored, figure, sentence)
        return draw_figure(figure, data)

    def report(
        self, output: StrPath = "report.html", *, progress: Progress = None, **keywords: Any
    ) -> Path:
        """Write the run as one HTML page, with the keywords of ``mosesplug.report``."""
        return report(self, output, progress=progress, **keywords)

    def explore(self, output: StrPath | None = None, **keywords: Any) -> RunPage:
        """Return the run as a page to explore, which a notebook shows.

        Args:
            output: the file; None writes ``report.html`` in a new temporary directory.
            keywords: those of ``mosesplug.report``.

        Raises:
            UsageError, StoreError, DataError, FormatError: as for ``mosesplug.report``.
        """
        path = Path(mkdtemp()) / "report.html" if output is None else output
        return RunPage(report(self, path, **keywords))

    def _open(self, *, with_lists: bool = False) -> AbstractContextManager[StoredRun]:
        return open_stored_run(self.path, with_lists=with_lists, opened=self.store)

    def __getstate__(self) -> dict[str, Any]:
        # Another process opens the store itself.
        return {"path": self.path, "store": None}

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}: {self._describe()})"

    def _repr_html_(self) -> str:
        about = self._describe()
        if is_error_rate(self.signature):
            about += f"; scores in tables are {label_metric(self.metric, self.signature)}"
        head = f"<p><b>{escape(str(self.path))}</b>: {escape(about)}</p>\n"
        parts = [head, self.iterations._repr_html_()]
        if len(held_out := self.held_out):
            parts += ["<p>Held-out set and monitors</p>\n", held_out._repr_html_()]
        if len(reported := self.reported):
            parts += ["<p>Metrics that are only reported</p>\n", reported._repr_html_()]
        title = "Weights of the result" if self.is_finished else "The newest weights"
        return "".join([*parts, f"<p>{title}</p>\n", self.weights()._repr_html_()])

    def _describe(self) -> str:
        signature = self.signature
        scores = [display_score(signature, score) for score in self.iterations["score"].tolist()]
        best = min(scores) if is_error_rate(signature) else max(scores)
        state = "finished" if self.is_finished else "not finished"
        if (weights := self.sentence_weights) is not None:
            state += f", {describe_weights(weights)}"
        return (
            f"{count_noun(len(scores), 'iteration')}, "
            f"{self.metric} {scores[0]:.4f} to {scores[-1]:.4f} "
            f"(best {best:.4f}), {state}"
        )


def _name_weights(run: StoredRun, weights: InitialWeights | None) -> tuple[str, Weights]:
    """Return weights with a name; None stands for the run's result."""
    if weights is None:
        return run.weights_origin, run.weights
    arranged = run.arrange_weights(load_weights(weights, None))
    return (fspath(weights) if isinstance(weights, str | PathLike) else "given weights"), arranged


def _read_text(
    run: StoredRun, source: StrPath | None, references: StrPath | None, ids: bool | None
) -> ParallelText:
    paths = [None if path is None else Path(path) for path in (source, references)]
    return ParallelText.read(paths[0], paths[1], run.store, ids)


@LEARNING.in_messages()
def report(
    run: Run | StrPath | Sequence[Run | StrPath],
    output: StrPath | None = None,
    *,
    figure: str | None = None,
    references: StrPath | None = None,
    source: StrPath | None = None,
    ids: bool | None = None,
    examples: int = ReportSettings.examples,
    sentence: int | None = None,
    dpi: int = ReportSettings.dpi,
    title: str | None = None,
    report_metrics: Sequence[str | Metric] = (),
    sentences: int | None = None,
    max_size: float = ReportSettings.max_size,
    all_hypotheses: bool = False,
    progress: Progress = None,
) -> Path:
    """Write one HTML page about a run, or several, to read and to explore.

    In a browser, a reader moves weights, and the scores and translations of the stored lists
    follow. Printed, or without scripts, the page is a report: scores, weights, features, lists and
    sentences.

    Args:
        run: the run, its working directory, or its store; or several of them, on one tuning set.
            They are only read, and may be in progress.
        output: the file; None writes ``report.html``, or the figure's name with ``.png``.
        figure: write this figure as PNG instead of the page; see ``Run.plot`` for the names.
            Arguments that only the page reads are then rejected.
        references: file of the references, or their prefix; None leaves them out.
        source: file of the source sentences; None leaves them out.
        ids: whether lines of these files begin with sentence ids, as for ``optimize``.
        examples: number of the worst and of the best sentences in the printed report.
        sentence: the sentence whose search graph is drawn; None selects a small one.
        dpi: dots per inch of a PNG.
        title: title of the page; None names the working directory.
        report_metrics: metrics that the run did not optimize, or parts of its weighted sum. Each is
            a text such as ``"TER"`` or ``"CHRF beta:3"``, or a metric that ``command_metric``
            returns. The page has their scores in each iteration and plots of the trade-offs. Most
            metrics need ``references``.
        sentences: number of sentences whose lists the page holds, evenly spread over the tuning
            set; None holds all. The scores of moved weights are those of these sentences.
        max_size: largest size of the lists in the page, in MB. If not all hypotheses fit, it holds
            those that win near the weights that the run visited, then those with the best ranks.
        all_hypotheses: hold all hypotheses, whatever their size.
        progress: None, True for a bar, or a function that is called with the parts done,
            the number of parts, and a description.

    Returns:
        The path of the file.

    Raises:
        UsageError: there is no such figure, the run has no data for it, a figure is asked of
            several runs or with arguments that it does not depend on, ``max_size`` has no room for
            the hypotheses that scores need, or matplotlib is missing (``mosesplug[report]``).
        StoreError: there is no store, or it cannot be read.
        DataError: the run has no finished iteration yet, or the source or the references are not
            those of the run.
        FormatError: the source or the references cannot be read.

    Example:
        >>> import mosesplug
        >>> mosesplug.report("mert-work", "page.html", examples=1).name
        'page.html'
    """
    one_or_more = [run] if isinstance(run, Run | str | PathLike) else run
    runs = [_describe_source(run, references, source, ids) for run in one_or_more]
    if not runs:
        raise UsageError("a report needs at least one run")
    examples = check_declared(ReportSettings, "examples", examples)
    dpi = check_declared(ReportSettings, "dpi", dpi)
    if sentences is not None:
        sentences = check_declared(ReportSettings, "sentences", sentences)
    max_size = check_declared(ReportSettings, "max_size", max_size)
    if figure is not None:
        check_figure(figure)
        if len(runs) > 1:
            raise UsageError(f"the figure {figure} shows one run, but there are {len(runs)}")
        of_page = {
            "examples": examples != ReportSettings.examples,
            "report-metric": bool(report_metrics),
            "title": title is not None,
            "sentences": sentences is not None,
            "max-size": max_size != ReportSettings.max_size,
            "all-hypotheses": all_hypotheses,
            "sentence": sentence is not None and figure not in GRAPH_FIGURES,
        }
        for name in (name for name, is_given in of_page.items() if is_given):
            raise UsageError(f"the figure {figure} does not depend on {{--{name}}}: omit it")
        with runs[0].open() as (stored, text):
            text.check_length(stored.n_sentences)
            content = render_png(figure, gather_figure(stored, figure, sentence), dpi)
        path = Path(output or f"{figure}.png")
        write_atomic(path, content)
        return path
    if dpi != ReportSettings.dpi:
        raise UsageError("{--dpi} is the resolution of a figure, and the page has none: omit it")
    if all_hypotheses and max_size != ReportSettings.max_size:
        raise UsageError("{--all-hypotheses} and {--max-size} exclude each other: use one of them")
    require_matplotlib()
    with open_progress(progress) as show_progress:
        page = render_runs(
            runs,
            title,
            show_progress,
            examples=examples,
            lattice=sentence,
            watched=report_metrics,
            sentences=sentences,
            most_bytes=None if all_hypotheses else max_size * 1_000_000,
        )
    path = Path(output or "report.html")
    write_atomic(path, mark_invalid_utf8(page).encode())
    return path


def _describe_source(
    run: Run | StrPath, references: StrPath | None, source: StrPath | None, ids: bool | None
) -> RunSource:
    path, store = (run.path, run.store) if isinstance(run, Run) else (Path(run), None)
    return RunSource(
        path,
        store,
        None if references is None else Path(references),
        None if source is None else Path(source),
        ids,
    )
