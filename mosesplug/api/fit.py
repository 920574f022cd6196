"""The result of learning weights, and what can be done with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formats.moses.ini import MosesIni
from formats.text import write_atomic
from mosesplug.api.keywords import LEARNING
from mosesplug.api.lists.arrays import FeatureArrays, convert_features, number_sentences
from mosesplug.api.lists.nbest import NBest
from mosesplug.api.tables.gains import Gains, ValidationTable
from mosesplug.api.tables.records import tabulate_records
from mosesplug.api.tables.table import Table
from mosesplug.api.weights import WeightTable, find_format
from mosesplug.errors import UsageError, count_noun
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.features import FeatureSpace
from mosesplug.learning.domains import DomainScore
from mosesplug.learning.lengths import record_length
from mosesplug.learning.optimize import OptimizeResult
from mosesplug.learning.weights import score_hypotheses
from mosesplug.metrics.error_rates import display_score
from mosesplug.results.report.fit_figures import plot_fit
from mosesplug.results.report.gains import render_gains
from mosesplug.results.scores.trade_offs import measure_trade_offs
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.lengths import LengthRange
from mosesplug.settings.sentences.weights import describe_weights
from mosesplug.tuning_set import linear_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mosesplug.api.lists.sources import ListSource
    from mosesplug.api.reranking import RerankedLists
    from mosesplug.learning.runs import SeedResult

_DOMAINS = "domain=name held_out=is_held_out sentences start shared end"


@dataclass(frozen=True, repr=False, eq=False)
class Fit:
    """Learned weights with their scores; ``optimize`` returns it.

    Attributes:
        settings: what was learned from, and how.
        result: the data, and the result of every run.
        warnings: what to check about the data, the options and the weights.
        columns: int64 ``[n_features]``, the column of each feature in the matrix that was given;
            None if features came from elsewhere.
        config: the ``moses.ini`` of the starting weights; None without one.
        gains: the scores at the start and at the end, by the objective and by the metrics that were
            only reported, on the sentences learned from and on those held out. Empty if no metric
            was reported and no sentence held out. They print as tables; ``gains.to_pandas()`` is a
            data frame.

    Example:
        >>> import mosesplug
        >>> path = "run1.best100.out.gz"
        >>> fit = mosesplug.optimize(path, references="dev.en", initial="run1.dense")
        >>> fit
        mert: BLEU 1.0000 on 4 sentences, 0.0000 with the starting weights
        feature       weight
        LM0           0.6...
        WordPenalty0  -0.3...
        >>> fit.weights["LM0"], fit.vector.tolist()
        (0.6..., [0.6..., -0.3...])
        >>> lists = mosesplug.read_nbest(path)
        >>> [lists.texts[row] for row in fit.choose(lists)][:2]
        ['the house is small', 'yes it is']
        >>> fit.rerank(lists).texts[:2]
        ['the house is small', 'yes it is']
        >>> fit.save("tuned.json")
    """

    settings: LearningSettings
    result: OptimizeResult
    warnings: tuple[str, ...]
    columns: NDArray[np.int64] | None = None
    config: MosesIni | None = None
    gains: Gains = field(default_factory=Gains)

    @cached_property
    def weights(self) -> WeightTable:
        """The weights by name."""
        return self._table(self.result.learning.solution.weights, self.length_exponent)

    @cached_property
    def start(self) -> WeightTable:
        """The starting weights by name."""
        data = self.result.data
        return self._table(data.start.weights, data.start_exponent)

    @cached_property
    def domains(self) -> Mapping[str, WeightTable]:
        """The weights of each domain; empty without ``domains``.

        ``weights`` are the shared ones then, for sentences of other domains.
        """
        data, vector = self.result.data, self.result.learning.solution.weights
        names = () if data.domains is None else data.domains.domains.names
        return {name: self._table(vector, None, name) for name in names}

    @property
    def domain_scores(self) -> Table:
        """Scores of each domain at the start, with the shared and with its own weights.

        ``held_out`` is 1 in rows of sentences that were held out. Without ``domains``, no rows.
        """
        return tabulate_records(DomainScore, self.result.score_domains(), _DOMAINS)

    @property
    def _space(self) -> FeatureSpace:
        """The features of the lists."""
        data = self.result.data
        return data.space if data.domains is None else data.domains.base

    def _table(
        self, vector: NDArray[np.float64], exponent: float | None, domain: str | None = None
    ) -> WeightTable:
        data = self.result.data
        wanted = self.settings.length_range
        length = None if wanted is None else wanted.at(exponent)
        return WeightTable(
            self._space,
            vector if data.domains is None else data.domains.copies.weights(vector, domain),
            fixed=data.problem.is_fixed,
            config=self.config,
            changes=record_length(
                replace(self.settings.lists, derive=data.derived).changes, length
            ),
        )

    @property
    def vector(self) -> NDArray[np.float64]:
        """The weights, float64 ``[n_features]``.

        They are in the order of the given columns, or else of ``weights``.
        """
        values = self.weights.vector
        if self.columns is None:
            return values
        ordered = np.empty_like(values)
        ordered[self.columns] = values
        return ordered

    @property
    def length_exponent(self) -> float | None:
        """The learned exponent of the length that scores are divided by, or None."""
        return self.result.learning.solution.length_exponent

    @property
    def length_range(self) -> LengthRange | None:
        """The learned exponent and what it divides; None if scores are not divided."""
        wanted = self.settings.length_range
        return None if wanted is None else wanted.at(self.length_exponent)

    @property
    def score(self) -> float:
        """The corpus score of the 1-best hypotheses on the data that was learned from.

        Larger is better: for error rates, it is 1 minus the rate. The rate is shown where a fit is
        printed.
        """
        return self.result.learning.solution.score

    @property
    def start_score(self) -> float:
        """The score of the starting weights on the same data."""
        return self.result.learning.start

    @property
    def held_out(self) -> float | None:
        """The score on the held-out data; None without any."""
        return self.result.learning.held_out

    @property
    def start_held_out(self) -> float | None:
        """The score of the starting weights on the held-out data; None without any."""
        return self.result.learning.start_held_out

    @property
    def history(self) -> tuple[Mapping[str, Any], ...]:
        """The record of each step of the algorithm; empty for the average of several runs."""
        return self.result.learning.solution.history

    @property
    def runs(self) -> tuple[SeedResult, ...]:
        """The result of each seed."""
        return self.result.learning.runs

    @property
    def validation(self) -> ValidationTable | None:
        """The cross-validation; None without ``folds``."""
        validation = self.result.learning.validation
        return (
            None
            if validation is None
            else ValidationTable.of_result(validation, self.gains.of_data("folds"))
        )

    @property
    def sentence_weights(self) -> NDArray[np.float64] | None:
        """The weight of each sentence, float64 ``[n_sentences]``; None: 1 each.

        Scores of the data that was learned from count them, those of held-out data do not.
        """
        return self.result.data.problem.tuning_set.sentence_weights

    @property
    def signature(self) -> str:
        """The metric with its settings, the number of references and the version."""
        return self.result.data.signature

    @LEARNING.in_messages()
    def save(
        self,
        path: str | PathLike[str],
        format: str | None = None,
        *,
        config: str | PathLike[str] | None = None,
    ) -> None:
        """Write the weights; see ``WeightTable.save``.

        The weights of a domain go to ``PATH.DOMAIN``.
        """
        self.weights.save(path, format, config=config)
        to = None if not self.domains else find_format(Path(path), format)
        for name, table in self.domains.items():
            table.save(f"{fspath(path)}.{name}", to, config=config)

    def write_html(self, path: str | PathLike[str], *, title: str | None = None) -> Path:
        """Write one HTML page: gains, weights, and trade-offs with reported metrics.

        Args:
            path: the file.
            title: title of the page; None names the algorithm and the metric.

        Raises:
            OSError: the file cannot be written.
        """
        metric = self.signature.partition("|")[0]
        start, learned = self.start.vector, self.weights.vector
        page = render_gains(
            title or f"{metric} by {self.settings.algorithm}",
            self._summary(),
            self.gains,
            list(zip(self.weights.space.labels, start.tolist(), learned.tolist(), strict=False)),
            measure_trade_offs(self.result),
            self.warnings,
        )
        write_atomic(path, mark_invalid_utf8(page).encode())
        return Path(path)

    @LEARNING.in_messages()
    def choose(self, features: Any, sentence_ids: Any = None) -> NDArray[np.int64]:
        """Return the row of the 1-best hypothesis of each sentence.

        Args:
            features: ``[n_hyps, n_features]``, the columns that the weights were learned from; or
                an ``NBest``, whose features are found by their names.
            sentence_ids: the sentence of each hypothesis, as for ``optimize``; not for an
                ``NBest``.

        Returns:
            int64 ``[n_sentences]``: integer ids in ascending order, others in the order of their
            first appearance. The first row wins ties.

        Raises:
            UsageError: another number of columns or ids, or arrays with a length exponent.
            DataError: a value is not finite.
            FormatError: an ``NBest`` lacks a dense feature.
        """
        if isinstance(features, NBest):
            if sentence_ids is not None:
                raise UsageError("sentence_ids are those of the NBest: give features alone")
            scores = score_hypotheses(features.block, self.weights.file, self.length_range)
            ids = features.sentence_ids
        else:
            if self.length_exponent:
                raise UsageError(
                    "features have no lengths, by which scores are divided: give an NBest"
                )
            values = self._convert(features)
            scores = linear_scores(values.dense, values.sparse, self.weights.vector)
            ids = number_sentences(sentence_ids, len(values)).numbers
        # The best score first within each sentence; equal ones keep their order.
        order = np.lexsort((-scores, ids))
        return order[np.flatnonzero(np.diff(ids[order], prepend=-1))].astype(np.int64)

    def rerank(
        self,
        lists: ListSource,
        *,
        add_features: Mapping[str, Any] | None = None,
    ) -> RerankedLists:
        """Rank n-best lists by the learned weights; see ``mosesplug.rerank``.

        Features that were derived for learning are derived for these lists, too, unless they have
        them. ``add_features`` has the values of those that were added.
        """
        from mosesplug.api.lists.sources import convert_lists
        from mosesplug.api.reranking import rerank

        lists = convert_lists(lists)
        known = lists.space.group_names if isinstance(lists, NBest) else ()
        derived = self.weights.file.changes.derived_features
        return rerank(
            lists,
            self.weights,
            add_features=add_features,
            derive={name: text for name, text in derived.items() if name not in known},
        )

    def _convert(self, features: Any) -> FeatureArrays:
        """Return other features in the space of the weights."""
        space = self._space
        names = np.array([*space.group_names, *space.sparse], dtype=object)
        if self.columns is not None:
            names[self.columns] = names.copy()
        shape = getattr(features, "shape", None) or np.shape(features)
        if len(shape) == 2 and shape[1] != len(names):
            raise UsageError(f"features has {shape[1]} columns, but there are {len(names)} weights")
        if hasattr(features, "columns"):
            _check_columns(list(features.columns), names.tolist())
        is_sparse = hasattr(features, "tocsr")
        if space.n_sparse and not is_sparse:
            from scipy.sparse import csr_array

            features, is_sparse = csr_array(np.asarray(features)), True
        dense = [name for name, _ in space.groups] if is_sparse else None
        return convert_features(features, names.tolist(), dense)

    @LEARNING.in_messages()
    def plot(self, figure: str = "weights") -> Figure:
        """Return a matplotlib figure; notebooks show it.

        ``savefig`` writes it to a file.

        Args:
            figure: ``weights``, before and after; ``history``, the score, loss or objective after
                each step; ``surfaces``, the score as one weight changes; ``features``, their
                influence and correlation with the metric.

        Raises:
            UsageError: there is no such figure, there are no data for it, or matplotlib is missing
                (``mosesplug[report]``).
        """

        return plot_fit(self.result, figure)

    def __repr__(self) -> str:
        warnings = (f"warning: {warning}" for warning in self.warnings)
        return "\n".join([self._summary(), repr(self.weights), *warnings])

    def _repr_html_(self) -> str:
        warnings = "".join(f"<p>warning: {escape(warning)}</p>" for warning in self.warnings)
        return f"<p>{escape(self._summary())}</p>{self.weights._repr_html_()}{warnings}"

    def _summary(self) -> str:
        learned, away = self.result.learning.sentences
        lists, others = count_noun(learned, "sentence"), count_noun(away, "held-out sentence")
        metric = self.signature.partition("|")[0]
        text = (
            f"{self.settings.algorithm}: {metric} {self._show(self.score)} on {lists}, "
            f"{self._show(self.start_score)} with the starting weights"
        )
        if (weights := self.sentence_weights) is not None:
            text += f", {describe_weights(weights)}"
        if self.held_out is not None and self.start_held_out is not None:
            text += (
                f"; on {others} {self._show(self.held_out)}, "
                f"{self._show(self.start_held_out)} with the starting weights"
            )
        if (lengths := self.length_range) is not None:
            text += f"; scores are divided by {lengths.by}**{lengths.low:.4g}"
        return text

    def _show(self, score: float) -> str:
        return f"{display_score(self.signature, score):.4f}"


def _check_columns(columns: Sequence[object], names: Sequence[str]) -> None:
    """Check that the columns of a data frame are the features, in their order."""
    for place, (column, name) in enumerate(zip(columns, names, strict=True)):
        if str(column) != name and not isinstance(column, int):
            raise UsageError(
                f"column {place} of features is {column!r}, but its weight is that of {name}: "
                f"give the columns {', '.join(names[:30])} in this order"
            )
