"""Check features, sentence ids, texts and references that a caller has in memory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.entry import BLANKS
from formats.nbest.files import FEW
from formats.references import read_reference, read_references
from mosesplug.api.numbers import convert_numbers
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import SparseRows

_LARGEST_ID = 2.0**53
"""All smaller integers are exact as floats."""


@dataclass(frozen=True)
class FeatureArrays:
    """Feature values, dense columns apart from sparse ones.

    Attributes:
        dense: float32 ``[n_hyps, n_dense]``.
        sparse: the values of the sparse features, ascending within a row.
        columns: int64 ``[n_features]``; the caller's column of each feature in ``space``.
    """

    space: FeatureSpace
    dense: NDArray[np.float32]
    sparse: SparseRows
    columns: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.dense)

    def take(self, rows: NDArray[np.int64]) -> FeatureArrays:
        """Return the given rows, in that order."""
        return FeatureArrays(self.space, self.dense[rows], self.sparse.take(rows), self.columns)


@dataclass(frozen=True)
class SentenceNumbers:
    """The sentence of each hypothesis.

    Attributes:
        numbers: int64 ``[n_hyps]``, sentences counted from 0.
        ids: the id of each sentence, as the caller wrote it.
    """

    numbers: NDArray[np.int64]
    ids: Sequence[Hashable]

    @property
    def order(self) -> NDArray[np.int64]:
        """The rows grouped by sentence, otherwise in order; int64 ``[n_hyps]``."""
        return np.argsort(self.numbers, kind="stable")


def convert_features(
    features: Any, names: Sequence[str] | None = None, dense: Sequence[str] | None = None
) -> FeatureArrays:
    """Check a feature matrix, and split it into dense and sparse columns.

    Args:
        features: ``[n_hyps, n_features]`` of real numbers: an array, a data frame, or a SciPy
            sparse matrix.
        names: one for each column; equal neighbors are one feature with several values. None:
            those of the data frame, or ``F0``, ``F1``, ...
        dense: names of the dense columns of a sparse matrix. None: all if there are up to 50,
            else those with a value in at least half of the rows.
    """
    if names is None and hasattr(features, "columns"):
        names = [str(name) for name in features.columns]
    if hasattr(features, "tocsr"):
        return _convert_sparse(features, names, dense)
    if dense is not None:
        raise UsageError("dense names columns of a sparse matrix, but features is a dense array")
    values = convert_numbers(features, "features")
    if values.ndim != 2:
        raise UsageError(
            f"features has the shape {values.shape}: give an array [n_hyps, n_features]"
        )
    columns = _check_names(names, values.shape[1])
    space = _make_space(columns, ())
    converted = _to_single(values)
    if not np.isfinite(converted).all():
        row, column = np.argwhere(~np.isfinite(converted))[0].tolist()
        raise _not_finite(row, column, columns, values[row, column])
    empty = SparseRows.empty(len(values))
    return FeatureArrays(space, converted, empty, np.arange(len(columns)))


def _convert_sparse(
    features: Any, names: Sequence[str] | None, dense: Sequence[str] | None
) -> FeatureArrays:
    if len(features.shape) != 2:
        raise UsageError(
            f"features has the shape {features.shape}: give a matrix [n_hyps, n_features]"
        )
    matrix = features.tocsr(copy=True)
    matrix.sum_duplicates()
    n_rows, n_columns = matrix.shape
    columns = _check_names(names, n_columns)
    data = _to_single(convert_numbers(matrix.data, "features"))
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices
    owner = np.repeat(np.arange(n_rows), np.diff(indptr))
    if not np.isfinite(data).all():
        entry = int(np.argmin(np.isfinite(data)))
        raise _not_finite(int(owner[entry]), int(indices[entry]), columns, matrix.data[entry])
    is_dense = _choose_dense(columns, indices, n_rows, dense)
    places = np.concatenate([np.flatnonzero(is_dense), np.flatnonzero(~is_dense)])
    space = _make_space(
        [columns[place] for place in np.flatnonzero(is_dense)],
        [columns[place] for place in np.flatnonzero(~is_dense)],
    )
    position = np.argsort(places)
    mine = is_dense[indices]
    values = np.zeros((n_rows, space.n_dense), dtype=np.float32)
    values[owner[mine], position[indices[mine]]] = data[mine]
    # Dense features are before the sparse ones, so that their columns are negative.
    sparse = SparseRows(indptr, indices, data).move((position - space.n_dense).astype(np.int32))
    return FeatureArrays(space, values, sparse, places)


def _choose_dense(
    columns: Sequence[str], indices: NDArray[Any], n_rows: int, dense: Sequence[str] | None
) -> NDArray[np.bool_]:
    """Return which columns are dense, bool ``[n_features]``; see ``convert_features``."""
    if dense is None:
        counts = np.bincount(indices, minlength=len(columns))
        return 2 * counts >= n_rows if len(columns) > FEW else np.ones(len(columns), dtype=np.bool_)
    known = set(columns)
    for place, name in enumerate(dense):
        if name not in known:
            raise UsageError(f"dense[{place}]: features has no column {name!r}")
    wanted = set(dense)
    return np.array([name in wanted for name in columns], dtype=np.bool_)


def _check_names(names: Sequence[str] | None, count: int) -> list[str]:
    """Return one name for each of ``count`` columns."""
    if names is None:
        return [f"F{column}" for column in range(count)]
    if isinstance(names, str):
        raise UsageError("names is a single text: give a sequence of names, one for each column")
    columns = list(names)
    if len(columns) != count:
        raise UsageError(f"{len(columns)} names for {count} columns of features: give one for each")
    for place, name in enumerate(columns):
        if not isinstance(name, str) or not name or any(map(str.isspace, name)):
            raise UsageError(f"names[{place}] is {name!r}: give a text without blanks")
    return list(map(str, columns))


def _make_space(dense: Sequence[str], sparse: Sequence[str]) -> FeatureSpace:
    space = FeatureSpace.of_names(dense, sparse)
    names = [*(name for name, _ in space.groups), *sparse]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise UsageError(
            f"names: {repeated!r} is repeated; only adjacent dense columns may share a name, as "
            "values of one feature"
        )
    return space


def _to_single(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return numbers as float32; those beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32)


def _not_finite(row: int, column: int, names: Sequence[str], value: object) -> DataError:
    return DataError(
        f"features[{row}, {column}] ({names[column]}) is {value}: give finite numbers of single "
        "precision"
    )


def number_sentences(sentence_ids: Any, count: int, n_lines: int | None = None) -> SentenceNumbers:
    """Number the sentences of hypotheses.

    Args:
        sentence_ids: ``[count]``, the sentence of each hypothesis: integers, texts, or anything
            that can be a key. Hypotheses of a sentence need not be adjacent.
        n_lines: number of sentences, if integers are line numbers from 0. None: sentences are
            numbered by their integers in ascending order. Other ids are numbered in the order of
            their first appearance.

    Raises:
        UsageError: there is not one id for each hypothesis, or one cannot be a key.
        DataError: a line number is outside the lines, or there are other ids than lines.
    """
    if sentence_ids is None:
        raise UsageError("sentence_ids is missing: give the sentence of each hypothesis")
    if isinstance(sentence_ids, str | bytes) or not hasattr(sentence_ids, "__len__"):
        raise UsageError("sentence_ids must be a sequence: the sentence of each hypothesis")
    if getattr(sentence_ids, "ndim", 1) != 1:
        raise UsageError(
            f"sentence_ids has the shape {sentence_ids.shape}: give one id for each hypothesis"
        )
    if len(sentence_ids) != count:
        raise UsageError(
            f"sentence_ids has {len(sentence_ids)} entries for {count} hypotheses: give one for "
            "each"
        )
    ids = list(sentence_ids.tolist() if hasattr(sentence_ids, "tolist") else sentence_ids)
    if all(isinstance(identifier, int | float | np.number) for identifier in ids):
        return _number_integers(_check_integers(ids), n_lines)
    places: dict[Hashable, int] = {}
    try:
        numbers = [places.setdefault(identifier, len(places)) for identifier in ids]
    except TypeError:
        raise UsageError("sentence_ids: an id cannot be hashed; give numbers or texts") from None
    if missing := [place for place, identifier in enumerate(ids) if _is_missing(identifier)]:
        raise DataError(f"sentence_ids[{missing[0]}] is {ids[missing[0]]}: give an id")
    if n_lines is not None and len(places) != n_lines:
        raise DataError(
            f"{n_lines} references for {len(places)} sentence ids: give one for each, in the "
            "order in which the ids first appear, or a mapping of ids to references"
        )
    return SentenceNumbers(np.array(numbers, dtype=np.int64), tuple(places))


def _is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, or a missing value of pandas."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _check_integers(ids: Sequence[Any]) -> NDArray[np.int64]:
    """Return integers, which may be written as floats."""
    numbers = np.array(ids, dtype=np.float64)
    usable = (numbers == np.round(numbers)) & (np.abs(numbers) < _LARGEST_ID)
    if not usable.all():
        row = int(np.argmin(usable))
        raise DataError(f"sentence_ids[{row}] is {ids[row]}: give integers below 2**53, or texts")
    return np.array(ids).astype(np.int64)


def _number_integers(ids: NDArray[np.int64], n_lines: int | None) -> SentenceNumbers:
    if n_lines is None:
        known, numbers = np.unique(ids, return_inverse=True)
        return SentenceNumbers(numbers.astype(np.int64).reshape(-1), known.tolist())
    outside = (ids < 0) | (ids >= n_lines)
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(
            f"sentence_ids[{row}] is {ids[row]}, but the references have {n_lines} sentences: "
            "integers are their lines, from 0 (several references are [reference][sentence])"
        )
    return SentenceNumbers(ids, range(n_lines))


def encode_texts(texts: Any, what: str, count: int | None = None) -> list[bytes]:
    """Return texts as bytes without surrounding blanks.

    Args:
        count: the required number; None: any number.
    """
    if isinstance(texts, str | bytes | Mapping) or not hasattr(texts, "__len__"):
        raise UsageError(f"{what} must be a sequence of texts")
    if hasattr(texts, "columns"):
        raise UsageError(f"{what} is a data frame: give one of its columns")
    if count is not None and len(texts) != count:
        raise UsageError(f"{what} has {len(texts)} texts, but there must be {count}")
    encoded = []
    for row, text in enumerate(texts):
        if isinstance(text, str):
            try:
                line = text.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError as error:
                raise DataError(f"{what}[{row}] is not valid Unicode: {error.reason}") from None
        elif isinstance(text, bytes):
            line = text
        else:
            raise UsageError(f"{what}[{row}] is a {type(text).__name__}: give texts")
        if b"\n" in line:
            raise DataError(f"{what}[{row}] has a line break: give one sentence for each")
        encoded.append(line.strip(BLANKS))
    return encoded


_FORMS = "{} must be a file, a text for each sentence, or several sequences of texts"


def load_references(references: Any, what: str = "references") -> list[list[bytes]]:
    """Return references as ``[reference][line]``.

    Args:
        references: a file or the prefix of several; several ``Path`` objects; a sequence of texts,
            one for each sentence; or several such sequences, one for each reference.

    Raises:
        DataError: there is no text, one has a line break, or the references differ in length.
    """
    if isinstance(references, str | PathLike):
        return read_references(references)
    if hasattr(references, "columns"):
        raise UsageError(f"{what} is a data frame: give its column, or a list of its columns")
    if isinstance(references, Mapping | bytes | Set) or not hasattr(references, "__len__"):
        raise UsageError(_FORMS.format(what))
    references = list(references)
    if not references:
        raise DataError(f"{what}: there is no reference translation")
    if all(isinstance(reference, Path) for reference in references):
        return _read_files(references)
    if all(isinstance(reference, str | bytes) for reference in references):
        return [encode_texts(references, what)]
    if any(isinstance(reference, str | bytes | Mapping) for reference in references):
        raise UsageError(_FORMS.format(what))
    loaded = [
        encode_texts(reference, f"{what}[{place}]") for place, reference in enumerate(references)
    ]
    for place, lines in enumerate(loaded):
        if len(lines) != len(loaded[0]):
            raise DataError(
                f"{what}[{place}] has {len(lines)} sentences, and {what}[0] has {len(loaded[0])}: "
                "give [reference][sentence]"
            )
    if not loaded[0]:
        raise DataError(f"{what}: there is no reference translation")
    return loaded


def name_references(references: Any) -> str:
    """Return what messages call references: the file, if there is one."""
    if isinstance(references, Sequence) and len(references) == 1:
        references = references[0] if isinstance(references[0], Path) else None
    return fspath(references) if isinstance(references, str | PathLike) else "the references"


def arrange_references(
    references: Mapping[Any, Any], sentences: SentenceNumbers, what: str = "references"
) -> list[list[bytes]]:
    """Return references given by sentence id as ``[reference][sentence]``.

    Args:
        references: a text, or a sequence of texts, for each sentence id.

    Raises:
        DataError: a sentence has no reference, or they differ in number.
    """
    every = []
    for number, sentence in enumerate(sentences.ids):
        if sentence not in references:
            row = int((sentences.numbers == number).argmax())
            raise DataError(
                f"{what} has no entry for the sentence id {sentence!r} of hypothesis {row}"
            )
        texts_of_sentence = references[sentence]
        if not isinstance(texts_of_sentence, str | bytes | Sequence):
            raise UsageError(
                f"{what}[{sentence!r}] is {texts_of_sentence!r}: give one or several texts"
            )
        texts = (
            [texts_of_sentence] if isinstance(texts_of_sentence, str | bytes) else texts_of_sentence
        )
        every.append(encode_texts(texts, f"{what}[{sentence!r}]"))
        if not every[-1] or len(every[-1]) != len(every[0]):
            raise DataError(
                f"{what}[{sentence!r}] has {len(every[-1])} texts, and that of "
                f"{sentences.ids[0]!r} has {len(every[0])}: give each sentence the same number"
            )
    return [list(lines) for lines in zip(*every, strict=True)]


def _read_files(paths: Sequence[Path]) -> list[list[bytes]]:
    if len(paths) == 1:
        references = read_references(paths[0])
    else:
        references = [read_reference(path) for path in paths]
    if not references[0]:
        raise FormatError(
            "there is no reference in it",
            path=paths[0],
            remedy="Give the reference translation, one sentence a line",
        )
    return references
