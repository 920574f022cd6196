"""n-best lists as arrays: read, make and write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from os import fspath
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.nbest.files import format_list
from formats.nbest.list_format import SentenceIds
from formats.pipes import wrap_files
from formats.text import StrPath, atomic_write
from mosesplug.api.keywords import LEARNING, ListKeywords, make_list_keywords
from mosesplug.api.lists.arrays import (
    FeatureArrays,
    convert_features,
    encode_texts,
    number_sentences,
)
from mosesplug.api.numbers import check_column, check_integer
from mosesplug.api.progress import log_formats
from mosesplug.api.tables.records import Tabular
from mosesplug.api.tables.table import Column, ColumnType, NamedValues, Table
from mosesplug.errors import DataError, UsageError, count_noun
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.features import FeatureSpace
from mosesplug.kernels import read_only
from mosesplug.learning.lists.blocks import find_dense_features, read_list
from mosesplug.results.render.tables import format_table, render_table
from mosesplug.tuning_set import SparseRows

_SHOWN = 10
"""Hypotheses that a list shows of itself."""
_SHOWN_TEXT = 60
"""Longest text that is shown whole."""
_HEAD = ("sentence", "hypothesis", "features", "score")
_EXACT_DIGITS = 9
"""Digits that preserve a float32."""


class NBest(Tabular):
    """n-best lists: hypotheses with their sentences, texts, features and model scores.

    Hypotheses are grouped by sentence in ascending order, and keep their order within a sentence.
    All arrays are read-only.

    Args:
        sentence_ids: the line of the input of each hypothesis, integers from 0 in any order.
        hypotheses: the texts, tokens separated by blanks; str or bytes.
        features: ``[n_hyps, n_features]``, an array or a SciPy sparse matrix.
        names: one for each column; equal neighbors are values of one feature. None: ``F0``,
            ``F1``, ...
        dense: names of the dense columns of a sparse matrix; None: all if there are up to 50, else
            those with a value in at least half of the rows.
        scores: the model score of each hypothesis; None: unknown.

    Raises:
        UsageError: an argument has another shape than the others.
        DataError: a value is not finite, a sentence id is negative, or a text has a line break.

    Example:
        >>> import mosesplug
        >>> lists = mosesplug.NBest(
        ...     sentence_ids=[0, 0, 1],
        ...     hypotheses=["a house", "the house", "yes"],
        ...     features=[[-3.0, 2], [-2.5, 2], [-1.0, 1]],
        ...     names=["LM", "Words"],
        ... )
        >>> lists
        NBest of 2 sentences, 3 hypotheses, 2 features
        >>> lists.texts
        ['a house', 'the house', 'yes']
        >>> lists.dense[:, 0]
        array([-3. , -2.5, -1. ], dtype=float32)
    """

    def __init__(
        self,
        sentence_ids: Any,
        hypotheses: Sequence[str] | Sequence[bytes],
        features: Any,
        *,
        names: Sequence[str] | None = None,
        dense: Sequence[str] | None = None,
        scores: Any = None,
    ) -> None:
        values = convert_features(features, names, dense)
        numbered = number_sentences(sentence_ids, len(values))
        ids = np.array(numbered.ids, dtype=object)[numbered.numbers]
        for row, number in enumerate(ids.tolist()):
            if not isinstance(number, int) or number < 0:
                raise DataError(
                    f"sentence_ids[{row}] is {number!r}: the ids of n-best lists are lines of the "
                    "input, integers from 0"
                )
        texts = encode_texts(hypotheses, "hypotheses", len(values))
        order = numbered.order
        known = None if scores is None else check_column(scores, "scores", len(values))[order]
        self._block = make_block(
            ids.astype(np.int64)[order], [texts[row] for row in order], values.take(order), known
        )

    @classmethod
    def of_block(cls, block: NBestList, ids: Sequence[str] = ()) -> NBest:
        """Return the lists of arrays that a reader of ``formats`` returned.

        Args:
            block: the arrays.
            ids: sentence ids that are texts, by their numbers.
        """
        lists = cls.__new__(cls)
        lists._block = replace(block, file_rows=None, ids=tuple(ids))
        return lists

    @property
    def block(self) -> NBestList:
        """The lists as ``formats`` reads them, with the bytes of the texts."""
        return self._block

    @property
    def sentence_ids(self) -> NDArray[np.int64]:
        """The input line of each hypothesis, int64 ``[n_hyps]``, from 0, ascending."""
        return read_only(self._block.sentence_ids)

    @property
    def ids(self) -> tuple[str, ...]:
        """Sentence ids that are texts: ``ids[i]`` is that of sentence ``i``; else empty."""
        return self._block.ids

    def name_sentence(self, sentence_id: int) -> str:
        """Return the id of a sentence as its file has it."""
        return self.ids[sentence_id] if self.ids else str(sentence_id)

    @cached_property
    def texts(self) -> list[str]:
        """The hypotheses; bytes that are not UTF-8 are surrogate escapes."""
        rows = range(len(self._block))
        return [self._block.text(row).decode("utf-8", "surrogateescape") for row in rows]

    @property
    def dense(self) -> NDArray[np.float32]:
        """Values of the dense features, float32 ``[n_hyps, n_dense]``."""
        return read_only(self._block.dense)

    @property
    def sparse(self) -> Any:
        """Sparse feature values, SciPy CSR ``[n_hyps, n_sparse]``; None without any."""
        block = self._block
        if not block.sparse_names:
            return None
        from scipy.sparse import csr_array

        arrays = block.sparse_data, block.sparse_indices, block.sparse_indptr
        return csr_array(arrays, shape=(len(block), len(block.sparse_names)))

    @property
    def features(self) -> Any:
        """All features, dense ones first: an array, or SciPy CSR if there are sparse ones."""
        if (sparse := self.sparse) is None:
            return self.dense
        from scipy.sparse import csr_array, hstack

        return hstack([csr_array(self.dense), sparse], format="csr")

    @property
    def space(self) -> FeatureSpace:
        """The dense features with their widths, and the sparse ones."""
        return FeatureSpace(self._block.groups, self._block.sparse_names)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each column of ``features``, as ``names`` of the constructor."""
        return (*self.space.group_names, *self._block.sparse_names)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Model scores, float64 ``[n_hyps]``; NaN where the list has none."""
        return read_only(self._block.scores)

    @property
    def table(self) -> Table:
        """One row for each hypothesis.

        Columns: ``id``, the sentence, an integer or a text; ``hyp``, its text; the value of each
        dense feature under its name, as ``TM_0`` for the first of several; ``sparse``, if there are
        sparse features; ``model_score``, if a hypothesis has one. A name that is taken has an
        underscore behind it.
        """
        block = self._block
        ids: tuple[ColumnType, Column] = ("int64", block.sentence_ids)
        if self.ids:
            numbers = block.sentence_ids.tolist()
            ids = ("text", [mark_invalid_utf8(self.ids[number]) for number in numbers])
        columns: dict[str, tuple[ColumnType, Column]] = {"id": ids}
        if block.has_texts:
            columns["hyp"] = ("text", list(map(mark_invalid_utf8, self.texts)))
        for label, values in zip(self.space.labels, block.dense.T, strict=False):
            columns[_find_free_name(label, columns)] = ("float32", values)
        if block.sparse_names:
            rows = SparseRows(*block.sparse_rows)
            names = list(map(mark_invalid_utf8, block.sparse_names))
            columns[_find_free_name("sparse", columns)] = ("features", NamedValues(names, rows))
        if not np.isnan(block.scores).all():
            columns[_find_free_name("model_score", columns)] = ("float64", block.scores)
        return Table.of_columns(columns)

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have a hypothesis."""
        return len(np.unique(self._block.sentence_ids))

    def __len__(self) -> int:
        return len(self._block)

    def sentence(self, sentence_id: int) -> NBest:
        """Return the list of one sentence; it is empty if the sentence has none."""
        first, last = np.searchsorted(self._block.sentence_ids, [sentence_id, sentence_id + 1])
        return self.take(np.arange(first, last))

    def take(self, rows: Any) -> NBest:
        """Return some hypotheses.

        Args:
            rows: integers ``[n]``, such that sentence ids do not descend.
        """
        block, wanted = self._block, np.asarray(rows, dtype=np.int64)
        if (np.diff(block.sentence_ids[wanted]) < 0).any():
            raise UsageError("rows: the sentences of n-best lists must be in ascending order")
        return NBest.of_block(block.take(wanted), self.ids)

    def __repr__(self) -> str:
        sentences = count_noun(self.n_sentences, "sentence")
        hypotheses = count_noun(len(self), "hypothesis")
        return f"NBest of {sentences}, {hypotheses}, {count_noun(len(self.space), 'feature')}"

    def __str__(self) -> str:
        return "\n".join([repr(self), *format_table([_HEAD, *self._rows()], left=3)])

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>" + render_table(_HEAD, self._rows(), range(3))

    def _rows(self) -> Iterable[tuple[str, str, str, str]]:
        """Return the cells of the first hypotheses."""
        first = self.take(np.arange(min(len(self), _SHOWN)))
        none = np.zeros(len(first), dtype=np.int64)  # a text may look like the end of a field
        lines = format_list(replace(first.block, text_starts=none, text_ends=none), named=False)
        for row, line in enumerate(lines):
            values = line.split(b"|||")[2].strip().decode("utf-8", "replace")
            score = float(first.scores[row])
            shown = "" if np.isnan(score) else f"{score:.6g}"
            text = _shorten(first.texts[row])
            yield self.name_sentence(int(first.sentence_ids[row])), text, _shorten(values), shown


def _find_free_name(label: str, columns: Mapping[str, Any]) -> str:
    """Return the name of a column, with underscores if another column has it."""
    name = mark_invalid_utf8(label)
    while name in columns:
        name += "_"
    return name


@LEARNING.in_messages()
def read_nbest(path: StrPath, *, threads: int = 2, **reading: Unpack[ListKeywords]) -> NBest:
    """Read n-best lists from a file, plain or compressed.

    Args:
        path: a file of any format of n-best lists.
        threads: number of threads that parse.
        reading: see ``ListKeywords``; ``add_features`` are in the order of the file.

    Returns:
        The lists as arrays.

    Raises:
        FormatError: the file cannot be read, or is no n-best list.

    Example:
        >>> import mosesplug
        >>> lists = mosesplug.read_nbest("run1.best100.out.gz")
        >>> lists.dense.shape
        (12, 2)
        >>> lists.sentence(1).texts
        ['yes it', 'yes it is', 'no it is']
    """
    settings = make_list_keywords(reading)
    ids = SentenceIds()
    (file,) = wrap_files([Path(path)])
    log_formats([file], settings)
    chosen = find_dense_features([file], settings)
    block = read_list(file, settings, dense=chosen, ids=ids, threads=threads)
    return NBest.of_block(block, ids.names)


@LEARNING.in_messages()
def write_nbest(path: StrPath, lists: NBest, *, digits: int = _EXACT_DIGITS) -> None:
    """Write n-best lists in the Moses format.

    A file whose name ends in ``.gz`` is compressed.

    Args:
        path: the file, which appears only when it is complete.
        lists: the lists.
        digits: significant digits of values and scores; 9 preserve them exactly.

    Raises:
        UsageError: ``lists`` is no ``NBest``, or ``digits`` no positive integer.
        DataError: the format cannot hold a text or a name: a text with ``|||``, the name of a
            dense feature with an underscore, or of a sparse one without.

    Example:
        >>> import mosesplug
        >>> lists = mosesplug.read_nbest("run1.best100.out.gz")
        >>> mosesplug.write_nbest("first.gz", lists.sentence(0))
        >>> mosesplug.read_nbest("first.gz")
        NBest of 1 sentence, 3 hypotheses, 2 features
    """
    if not isinstance(lists, NBest):
        raise UsageError(f"lists is a {type(lists).__name__}: give an NBest")
    digits = check_integer(digits, "digits", 1)
    _check_writable(lists)
    with atomic_write(path, compress="gz" if fspath(path).endswith(".gz") else None) as file:
        file.writelines(format_list(lists.block, digits=digits, ids=lists.ids))


def _check_writable(lists: NBest) -> None:
    """Check that the Moses format can hold these lists."""
    for name, _ in lists.space.groups:
        if "_" in name or name.endswith("="):
            raise DataError(
                f"n-best lists cannot hold a dense feature {name!r}: a label with an underscore is "
                "a sparse feature; rename it"
            )
    for name in lists.space.sparse:
        if "_" not in name or name.endswith("="):
            raise DataError(
                f"n-best lists cannot hold a sparse feature {name!r}: its label needs an "
                "underscore; rename it"
            )
    for row, text in _texts(lists.block):
        if b"|||" in text:
            raise DataError(f"hypothesis {row} has |||, which separates the fields of n-best lists")


def _texts(block: NBestList) -> Iterator[tuple[int, bytes]]:
    return ((row, block.text(row)) for row in range(len(block)))


def make_block(
    sentence_ids: NDArray[np.int64],
    texts: Sequence[bytes] | None,
    features: FeatureArrays,
    scores: NDArray[np.float64] | None = None,
) -> NBestList:
    """Return lists as ``formats`` reads them.

    Args:
        sentence_ids: int64 ``[n]``, never decreasing.
        texts: the hypotheses; None: unknown.
        features: their values.
        scores: float64 ``[n]``; None: unknown.
    """
    n, has_texts = len(sentence_ids), texts is not None
    texts = [b""] * n if texts is None else texts
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return NBestList(
        path="the hypotheses",
        sentence_ids=sentence_ids,
        buffer=np.frombuffer(b"".join(texts), dtype=np.uint8),
        text_starts=ends[:-1],
        text_ends=ends[1:],
        groups=features.space.groups,
        dense=features.dense,
        sparse_names=features.space.sparse,
        sparse_indptr=features.sparse.indptr,
        sparse_indices=features.sparse.indices,
        sparse_data=features.sparse.data,
        scores=np.full(n, np.nan) if scores is None else scores,
        extra_starts=ends[1:],
        extra_ends=ends[1:],
        lines=np.arange(1, n + 1),
        has_texts=has_texts,
    )


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN_TEXT else f"{text[: _SHOWN_TEXT - 3]}..."
