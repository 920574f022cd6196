"""Divide features by a power of their hypothesis' length; record the exponent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.text import StrPath, read_bytes
from formats.weights.any_format import WeightFile
from formats.weights.list_changes import ListChanges
from formats.weights.named import length_companion
from mosesplug.arrays import Floats
from mosesplug.errors import DataError, UsageError, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.problem import Problem
from mosesplug.settings.lengths import WORDS, LengthRange, parse_length_range
from mosesplug.store.columns import count_tokens
from mosesplug.tuning_set import SparseRows, TuningSet


@dataclass(frozen=True)
class LengthScale:
    """What is divided by the length, and within which exponents.

    Attributes:
        low, high: least and greatest exponent.
        columns: bool ``[n_features]``, the features to divide.
        by: int, column of the dense feature that is the length; None: the number of words.
    """

    low: float
    high: float
    columns: NDArray[np.bool_]
    by: int | None = None

    @property
    def start(self) -> float:
        """The exponent of the starting weights: the nearest to 0, which divides nothing."""
        return min(max(0.0, self.low), self.high)

    def divide(self, problem: Problem, exponent: float | None) -> Problem:
        """Return the problem with features divided by the power of the length."""
        if exponent is None or exponent == 0.0:
            return problem
        return replace(problem, tuning_set=self.divide_lists(problem.tuning_set, exponent))

    def divide_lists(self, lists: TuningSet, exponent: float) -> TuningSet:
        """Return lists with features divided by the power of the length."""
        divisors = self.lengths(lists) ** exponent
        dense, sparse = divide_features(lists.dense, lists.sparse, divisors, self.columns)
        return replace(lists, dense=dense, sparse=sparse)

    def lengths(self, lists: TuningSet) -> Floats:
        """Return the length of each hypothesis, float64 ``[n_hyps]``.

        Raises:
            DataError: a length is not above 0.
        """
        if self.by is None:
            lengths = lists.lengths.astype(np.float64)
            if lists.n_hyps and lengths.max() <= 1.0:  # as lists without texts have it
                raise DataError(
                    "{--length-exponent}: no hypothesis has more than one word. If the lists have "
                    "no texts, name a feature that is the length ({--length-by})"
                )
            return np.maximum(lengths, 1.0)  # of no words
        lengths = lists.dense[:, self.by].astype(np.float64)
        check_lengths(lengths, lists.space.labels[self.by])
        return lengths


def check_lengths(lengths: Floats, name: str) -> None:
    """Check that a feature, float64 ``[n]``, can be a length.

    Raises:
        DataError: a value is not above 0.
    """
    if not (lengths > 0.0).all():
        worst = float(lengths[int(np.argmin(lengths))])
        raise DataError(f"{{--length-by}} {name}: a length is {worst:g}; lengths must be above 0")


def divide_features(
    dense: NDArray[np.float32],
    sparse: SparseRows | None,
    divisors: Floats,
    columns: NDArray[np.bool_],
) -> tuple[NDArray[np.float32], SparseRows | None]:
    """Return features, some of them divided, in single precision as lists have them.

    Args:
        dense: float32 ``[n_hyps, n_dense]``.
        sparse: the sparse tail, or None.
        divisors: float64 ``[n_hyps]``, above 0.
        columns: bool ``[n_features]``, what is divided.
    """
    n_dense = dense.shape[1]
    divided = dense.copy()
    for column in np.flatnonzero(columns[:n_dense]):
        divided[:, column] = dense[:, column] / divisors
    if sparse is None or not columns[n_dense:].any():
        return divided, sparse
    rows = np.repeat(divisors, np.diff(sparse.indptr))
    chosen = columns[n_dense:][sparse.indices]
    data = np.where(chosen, sparse.data / rows, sparse.data).astype(np.float32)
    return divided, replace(sparse, data=data)


def make_length_scale(wanted: LengthRange, space: FeatureSpace) -> LengthScale:
    """Return what is divided in a feature space.

    Raises:
        UsageError: an unknown feature; or the length is no single dense feature.
    """
    columns = np.ones(len(space), dtype=np.bool_)
    if wanted.names:
        columns = _select(wanted.names, space, "{--length-exponent}")
    if wanted.by == WORDS:
        return LengthScale(wanted.low, wanted.high, columns)
    matching = np.flatnonzero(_select((wanted.by,), space, "{--length-by}"))
    if len(matching) != 1 or matching[0] >= space.n_dense:
        raise UsageError(f"{{--length-by}} {wanted.by}: give words, or one dense feature")
    by = int(matching[0])
    columns[by] = False
    return LengthScale(wanted.low, wanted.high, columns, by)


def _select(names: tuple[str, ...], space: FeatureSpace, option: str) -> NDArray[np.bool_]:
    try:
        return space.select(names)
    except KeyError as error:
        known = [*space.group_names, *space.sparse]
        raise UsageError(
            f"{option}: {explain_unknown_feature(str(error.args[0]), known)}"
        ) from None


def divide_block(
    block: NBestList, wanted: LengthRange
) -> tuple[NDArray[np.float32], SparseRows | None]:
    """Return the features of a list with some divided, as ``divide_features``.

    Raises:
        DataError: a length is not above 0, or the list has no texts.
    """
    space = FeatureSpace(block.groups, block.sparse_names)
    scale = make_length_scale(wanted, space)
    sparse = SparseRows(*block.sparse_rows)
    if scale.by is not None:
        lengths = block.dense[:, scale.by].astype(np.float64)
        check_lengths(lengths, wanted.by)
    elif block.has_texts:
        counts = count_tokens(
            np.asarray(block.buffer, dtype=np.uint8),
            np.asarray(block.text_starts, dtype=np.int64),
            np.asarray(block.text_ends, dtype=np.int64),
        )
        lengths = np.maximum(counts.astype(np.float64), 1.0)
    else:
        raise DataError(
            f"{block.path}: the list has no texts, so no number of words; name a feature that is "
            "the length ({--length-by})"
        )
    return divide_features(block.dense, sparse, lengths**wanted.low, scale.columns)


def find_length_range(weights: WeightFile, text: str | None, by: str = WORDS) -> LengthRange | None:
    """Return the exponent that lists are reranked with.

    Args:
        weights: the weights, which may record the exponent that they were learned with.
        text: the exponent of the user, which replaces a recorded one.
        by: the length, with ``text``.

    Raises:
        UsageError: a range instead of one exponent, or a length without an exponent.
        FormatError: a recorded exponent cannot be read, or there are two.
    """
    if text is None:
        if by != WORDS:
            raise UsageError("{--length-by} requires {--length-exponent}: give both or none")
        return find_recorded_length(weights)
    length = parse_length_range(text, by)
    if length.low != length.high:
        raise UsageError(f"{{--length-exponent}} {text}: give one exponent; optimize finds it")
    return length


def find_recorded_length(weights: WeightFile) -> LengthRange | None:
    """Return the exponent that weights were learned with; None if none is recorded.

    A file of weights records it in itself, as far as its format can, or in ``WEIGHTS.length``
    beside it.

    Raises:
        FormatError: the exponent cannot be read, or the two places contradict each other.
    """
    text = weights.changes.length_exponent
    inside = _parse_exponent(text, weights.path, "Correct the file") if text else None
    path = length_companion(weights.path)
    if not (Path(weights.path).is_file() and path.is_file()):
        return inside
    content = read_bytes(path).decode(errors="backslashreplace")
    beside = _parse_exponent(content, path, "Remove the file", line=1)
    if inside is not None and inside != beside:
        raise FormatError(
            f"the length exponent is {spell_exponent(beside)}, but {weights.path} records "
            f"{spell_exponent(inside)}",
            path=path,
            line=1,
            remedy="Remove this file if it belongs to other weights, or give {--length-exponent}",
        )
    return beside


def require_undivided(weights: WeightFile, what: str) -> None:
    """Reject weights of divided scores where scores are not divided.

    Args:
        what: what computes the scores, as a message names it.

    Raises:
        UsageError: the weights record a length exponent other than 0.
    """
    length = find_recorded_length(weights)
    if length is not None and length.low != 0.0:
        raise UsageError(
            f"{weights.path}: these weights belong to scores divided by the length to the power of "
            f"{spell_exponent(length)}, and {what} divides nothing. Give weights that were learned "
            "without {--length-exponent}"
        )


def with_recorded_length(weights: WeightFile) -> WeightFile:
    """Return weights that record the exponent of ``WEIGHTS.length``, too."""
    return replace(weights, changes=record_length(weights.changes, find_recorded_length(weights)))


def spell_exponent(length: LengthRange) -> str:
    """Return an exponent as files record it: ``[NAME,...:]X``.

    A length other than words follows.
    """
    return f"{length}{'' if length.by == WORDS else f' {length.by}'}"


def record_length(changes: ListChanges, length: LengthRange | None) -> ListChanges:
    """Return changes of lists with this exponent."""
    return replace(changes, length_exponent="" if length is None else spell_exponent(length))


def _parse_exponent(text: str, path: StrPath, remedy: str, line: int | None = None) -> LengthRange:
    words = text.split()
    try:
        spelled, by = words if len(words) == 2 else (*words, WORDS)
        length = parse_length_range(spelled, by)
    except (UsageError, ValueError):
        length = LengthRange(0.0, 1.0)
    if length.low != length.high:
        raise FormatError(
            f"{' '.join(words)[:40]!r} is not a length exponent",
            path=path,
            line=line,
            remedy=f"{remedy}, or give {{--length-exponent}}",
        )
    return length
