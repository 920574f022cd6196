"""Weights of one vector, or of the iterations of a run with their use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import Message, count_noun
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.results.render.record import Shown, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable, format_sparkline, list_more
from mosesplug.results.views.run import StoredRun
from mosesplug.results.weights.algebra import align, compute_norm
from mosesplug.results.weights.convert import spell_list_changes
from mosesplug.results.weights.sources import (
    ResolvedWeights,
    arrange_by_group,
    read_iteration_files,
    resolve_weights,
)
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_start
from mosesplug.tuning.workdir.workspace import Workspace

_SENTENCES = 100
"""Sentences of a batch."""

_BARS = 60
"""Longest sparkline."""

_CELL = 10
"""Width of a column of a drawn table."""


@dataclass(frozen=True)
class NamedWeight:
    """A weight by name, with its share of the L1 norm or a remark."""

    name: Annotated[str, Shown(mark_invalid_utf8, "feature", is_text=True)]
    weight: Annotated[float, Shown(".6g")]
    share: Annotated[str, Shown()] = ""


@dataclass(frozen=True)
class WeightVector:
    """One weight vector.

    Attributes:
        weights: the name that the user gave, of a file or a run.
        l1_norm: the norm of the dense weights.
        sparse: the largest first.
        not_tuned: weights that are known, but not tuned.
        learned_with: options with which its lists were changed.
        top: the number of sparse weights that blocks show; 0 for all.
    """

    JSON_KEYS: ClassVar = "weights format l1_norm dense sparse not_tuned"

    weights: str
    format: str
    l1_norm: float
    dense: Mapping[str, float]
    sparse: Mapping[str, float]
    not_tuned: Mapping[str, float]
    learned_with: tuple[str, ...] = ()
    top: int = 0

    @classmethod
    def of_weights(cls, weights: ResolvedWeights, top: int = 0) -> WeightVector:
        """Return what to show of weights."""
        return cls(
            weights.source,
            weights.format,
            compute_norm(weights),
            dict(zip(weights.names, weights.weights.dense, strict=True)),
            dict(sorted(weights.weights.sparse.items(), key=lambda item: -abs(item[1]))),
            weights.fixed_weights,
            tuple(spell_list_changes(weights.changes)),
            top,
        )

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield a description, and tables of dense and of sparse weights."""
        norm = self.l1_norm
        yield (
            f"{mark_invalid_utf8(self.weights)}: {self.format}, {len(self.dense)} dense weights of "
            f"L1 norm {norm:.6g}, {len(self.sparse)} sparse ones"
        )
        tuned = [
            NamedWeight(name, weight, f"{100 * abs(weight) / (norm or 1.0):.1f}%")
            for name, weight in self.dense.items()
        ]
        fixed = [NamedWeight(*item, "not tuned") for item in self.not_tuned.items()]
        if tuned or fixed:
            yield tabulate(NamedWeight, [*tuned, *fixed])
        if self.learned_with:
            yield Message(f"learned with {' '.join(map(mark_invalid_utf8, self.learned_with))}")
        if self.sparse:
            yield ""
            rows = [NamedWeight(*item) for item in self.sparse.items()][: self.top or None]
            yield tabulate(NamedWeight, rows, "name weight", {"name": "sparse feature"})
            yield from list_more(len(self.sparse), self.top)


@dataclass(frozen=True)
class SparseUse:
    """Numbers of distinct hypotheses in which sparse features are active.

    Attributes:
        counts: int64 ``[n_sparse]``, number of hypotheses whose value is not 0.
        hypotheses: number of distinct hypotheses in all lists.
        sentences: number of sentences whose lists were read.
    """

    names: tuple[str, ...]
    counts: NDArray[np.int64]
    hypotheses: int
    sentences: int

    @property
    def shares(self) -> dict[str, float]:
        """The share of the hypotheses in which each feature is active."""
        total = max(1, self.hypotheses)
        return {n: c / total for n, c in zip(self.names, self.counts.tolist(), strict=True)}


@dataclass(frozen=True)
class WeightHistory:
    """The weights that decoded the iterations; the dense ones have an L1 norm of 1.

    Attributes:
        iterations: the weights by name of each iteration; None if unknown, as of imported lists.
        result: the weights that the run ended with; None if unknown.
        use: how the lists use sparse features; None if it was not counted.
        top: the number of sparse features that blocks show; 0 for all.
    """

    JSON_KEYS: ClassVar = "run=source result_is=origin iterations result active distinct_hypotheses"

    source: str
    origin: str
    iterations: tuple[Mapping[str, float] | None, ...]
    result: Mapping[str, float] | None
    dense: tuple[str, ...]
    use: SparseUse | None = None
    top: int = 0

    def of(self, name: str) -> tuple[float | None, ...]:
        """Return the weights of one feature, then that of the result if there is one."""
        last = () if self.result is None else (self.result,)
        vectors = (*self.iterations, *last)
        return tuple(None if vector is None else vector.get(name, 0.0) for vector in vectors)

    @property
    def sparse(self) -> dict[str, float]:
        """The sparse weights of the result, or of the newest iteration."""
        newest = self.iterations[-1] if self.result is None else self.result
        dense = set(self.dense)
        return {name: weight for name, weight in (newest or {}).items() if name not in dense}

    @property
    def active(self) -> dict[str, float] | None:
        """The share of the hypotheses in which each sparse feature is active."""
        return None if self.use is None else self.use.shares

    @property
    def distinct_hypotheses(self) -> int | None:
        """The number of hypotheses of which these are shares."""
        return None if self.use is None else self.use.hypotheses

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield the dense weights, the largest sparse ones, and the most active ones."""
        count = count_noun(len(self.iterations), "iteration")
        yield f"{mark_invalid_utf8(self.source)}: weights of {count}, and {self.origin}"
        yield from self._list_dense(medium)
        sparse, shares = self.sparse, self.active or {}
        by_weight = sorted((n for n, w in sparse.items() if w), key=lambda name: -abs(sparse[name]))
        if not (by_weight or shares):
            return
        yield f"\nlargest of {len(by_weight)} sparse weights that are not 0"
        yield from self._list_sparse(by_weight, shares, medium)
        if shares:
            active = sorted((n for n in shares if shares[n] > 0.0), key=lambda name: -shares[name])
            yield (
                f"\nmost active of {len(active)} sparse features in {self.distinct_hypotheses} "
                "hypotheses"
            )
            yield from self._list_sparse(active, shares, medium)

    def _list_dense(self, medium: Medium) -> Iterator[Block]:
        """Yield dense weights: all iterations in a pipe, as many as fit on a terminal."""
        numbers = [str(number) for number in range(1, len(self.iterations) + 1)]
        heads = numbers if self.result is None else [*numbers, "result"]
        room = len(heads)
        if medium.is_terminal:
            longest = max(map(len, self.dense), default=0)
            left = medium.width - longest - max(10, min(len(heads), _BARS)) - 6
            room = min(max(left // _CELL, 2), len(heads))
        # The first iteration and the newest ones.
        places = [0, *range(len(heads) - room + 1, len(heads))]
        rows = [("feature", "iterations", *(heads[place] for place in places))]
        for name in self.dense:
            values = self.of(name)
            cells = ["-" if (v := values[place]) is None else f"{v:.4f}" for place in places]
            rows.append((mark_invalid_utf8(name), _draw_bars(values, medium), *cells))
        yield TextTable(rows, left=2)
        if left_out := len(heads) - len(places):
            yield f"({left_out} more columns: --format tsv shows all)"

    def _list_sparse(
        self, names: Sequence[str], shares: Mapping[str, float], medium: Medium
    ) -> Iterator[Block]:
        sparse = self.sparse
        rows = [("sparse feature", "iterations", "weight", *(["active"] if shares else []))]
        for name in names[: self.top or None]:
            share = [f"{100 * shares.get(name, 0.0):.2f}%"] if shares else []
            weight = f"{sparse.get(name, 0.0):.6g}"
            rows.append(
                (mark_invalid_utf8(name), _draw_bars(self.of(name), medium), weight, *share)
            )
        if len(rows) > 1:
            yield TextTable(rows, left=2)
        yield from list_more(len(names), self.top)


def _draw_bars(values: tuple[float | None, ...], medium: Medium) -> str:
    """Draw bars of at most ``_BARS`` values, evenly chosen from a longer run."""
    n = len(values)
    if n > _BARS:
        values = tuple(values[round(k * (n - 1) / (_BARS - 1))] for k in range(_BARS))
    return format_sparkline(values, medium.encoding)


def read_run_history(run: StoredRun, source: str) -> WeightHistory:
    """Return the history of a run with a store; ``source`` is the user's name of it."""
    result = ResolvedWeights(source, "dense", arrange_by_group(run), run.weights)

    def by_name(weights: Weights) -> Mapping[str, float] | None:
        if not (any(weights.dense) or any(weights.sparse.values())):
            return None
        return result.with_weights(weights.normalize(), source).by_name

    return WeightHistory(
        source=source,
        origin=run.weights_origin,
        iterations=tuple(by_name(read_start(record).weights) for record in run.records),
        result=by_name(run.weights),
        dense=result.names,
    )


def read_file_history(directory: Path) -> WeightHistory | None:
    """Return the history in a working directory of mert-moses.pl; None without one.

    Raises:
        FormatError: a file cannot be read.
    """
    files = read_iteration_files(directory)
    if not files:
        return None
    origin, tuned = "those of the last iteration", Workspace(directory, 0).tuned_config
    if tuned.is_file():
        origin = "the result, those of moses.ini"
        files.append(resolve_weights(str(tuned)))
    weights = tuple(
        file.with_weights(file.weights.normalize(), file.source).by_name for file in align(files)
    )
    n = len(weights) - tuned.is_file()
    result = weights[-1] if tuned.is_file() else None
    return WeightHistory(str(directory), origin, weights[:n], result, files[0].names)


def count_sparse_use(run: StoredRun) -> Iterator[SparseUse]:
    """Yield counts of hypotheses with each sparse feature, after some sentences."""
    names = run.space.sparse
    counts = np.zeros(len(names), dtype=np.int64)
    hypotheses = 0
    for first in range(0, run.n_sentences, _SENTENCES):
        last = min(first + _SENTENCES, run.n_sentences)
        batch = run.store.batch(np.arange(first, last))
        hypotheses += batch.n_hyps
        if batch.sparse is not None:
            active = batch.sparse.indices[batch.sparse.data != 0.0]
            counts += np.bincount(active, minlength=len(names))
        yield SparseUse(names, counts.copy(), hypotheses, last)
