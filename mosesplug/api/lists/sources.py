"""n-best lists in a caller's form: data frames, nested lists, hypotheses, files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.json_objects import LIST_KEYS
from formats.nbest.list_format import ID_NAMES, TEXT_NAMES, ListOptions, SentenceIds
from formats.nbest.readers.documents import parse_values
from mosesplug.api.lists.arrays import FeatureArrays, convert_features, encode_texts
from mosesplug.api.lists.nbest import NBest, make_block
from mosesplug.decoders.lists.files import read_decoded
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import SparseRows


class Frame(Protocol):
    """A table with named columns: of pandas, Polars, Arrow, or of this package."""

    def __getitem__(self, name: str, /) -> Any:
        """Return a column by name."""


ListSource = (
    NBest | str | PathLike[str] | Frame | Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]]
)
"""n-best lists: in memory, their file, a data frame, or nested lists ``[sentence][hypothesis]``."""


FRAME_IDS = (*ID_NAMES, "sentence")
"""Names of the column with the sentence id of a data frame."""

MODEL_SCORE = "model_score"
"""Name of the column with the model score."""

_SKIPPED = "-"


def convert_lists(
    lists: Any, columns: Sequence[str] | str | None = None, what: str = "lists"
) -> Any:
    """Return data frames and nested lists as ``NBest``; other forms as they are.

    Args:
        lists: an ``NBest``; a file; a data frame; nested lists, ``[sentence][hypothesis]`` or by
            sentence id; or several of the first three.
        columns: names of the columns of data frames to read; None: all.

    Raises:
        UsageError: a data frame lacks a column, or has others than numbers, or unsorted rows.
        DataError: a hypothesis has another form than the first one, or a value is not finite.
    """
    if lists is None or isinstance(lists, NBest | str | PathLike):
        return lists
    if is_frame(lists):
        return _convert_frame(lists, _split(columns), what)
    if isinstance(lists, Mapping):
        values = [{"id": name, "hyps": rows} for name, rows in lists.items()]
        return _convert_nested(values, what)
    if hasattr(lists, "shape"):
        if len(lists.shape) == 2 and np.asarray(lists).dtype.kind in "USO":
            return _convert_nested(np.asarray(lists).tolist(), what)
        return lists
    if not isinstance(lists, Iterable):
        return lists
    every = list(lists)
    if every and all(isinstance(item, list | tuple | Mapping) for item in every):
        for place, item in enumerate(every):
            if isinstance(item, Mapping) and not {*ID_NAMES, *LIST_KEYS} & item.keys():
                raise UsageError(
                    f"{what}[{place}] has no sentence id: call it id, or give a list of hypotheses "
                    "for each sentence, [sentence][hypothesis]"
                )
        return _convert_nested(every, what)
    names = _split(columns)
    return [
        _convert_frame(item, names, f"{what}[{place}]") if is_frame(item) else item
        for place, item in enumerate(every)
    ]


def convert_single(
    lists: Any, columns: Sequence[str] | str | None = None
) -> NBest | str | PathLike[str]:
    """Return lists as an ``NBest`` or their file."""
    converted = convert_lists(lists, columns)
    if not isinstance(converted, NBest | str | PathLike):
        raise UsageError(
            f"lists is a {type(lists).__name__}: give an NBest, a file, a data frame, or nested "
            "lists, [sentence][hypothesis]"
        )
    return converted


def is_frame(value: Any) -> bool:
    """Return whether a value has named columns, as those of pandas, Polars, Arrow."""
    return not isinstance(value, Mapping | type) and _find_names(value) is not None


def _find_names(frame: Any) -> list[str] | None:
    """Return the names of the columns; None if it is no table."""
    for attribute in ("column_names", "columns"):
        names = getattr(frame, attribute, None)
        if names is not None and hasattr(frame, "__getitem__"):
            return [str(name) for name in names]
    return None


def _check_names(frame: Any, what: str) -> list[str]:
    """Return the names of the columns, which are distinct texts."""
    names = _find_names(frame) or []
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{what} has several columns {name!r}: rename them")
    return names


def _split(columns: Sequence[str] | str | None) -> list[str] | None:
    if columns is None:
        return None
    return columns.split(",") if isinstance(columns, str) else [str(name) for name in columns]


def _convert_frame(frame: Any, wanted: Sequence[str] | None, what: str) -> NBest:
    """Return the lists of a data frame, one hypothesis a row."""
    names = _check_names(frame, what)
    if wanted is not None:
        if missing := [name for name in wanted if name != _SKIPPED and name not in names]:
            raise UsageError(
                f"{what} has no column {missing[0]!r}, only {', '.join(names)}: name its columns"
            )
        names = [name for name in names if name in wanted]
    identifier = _find_column(names, FRAME_IDS, what)
    text = _find_column(names, TEXT_NAMES, what)
    if identifier is None:
        raise UsageError(
            f"{what} has no column of sentence ids, only {', '.join(names)}: call it id"
        )
    others = [name for name in names if name not in (identifier, text, MODEL_SCORE)]
    numbers, ids = _number_rows(_read(frame, identifier), f"{what}[{identifier!r}]")
    texts = None
    if text is not None:
        texts = encode_texts(_read(frame, text).tolist(), f"{what}[{text!r}]", len(numbers))
    features = _read_features(frame, others, len(numbers), what)
    scores = None
    if MODEL_SCORE in names:
        scores = np.asarray(_read(frame, MODEL_SCORE), dtype=np.float64)
    return NBest.of_block(make_block(numbers, texts, features, scores), ids)


def _find_column(names: Sequence[str], known: Sequence[str], what: str) -> str | None:
    """Return the column with one of these names."""
    alike = [name for name in names if name in known]
    if len(alike) > 1:
        raise UsageError(
            f"{what}: the columns {' and '.join(alike)} have the same meaning: choose columns, as "
            f"columns={[name for name in names if name not in alike[1:]]}"
        )
    return alike[0] if alike else None


def _read(frame: Any, name: str) -> NDArray[Any]:
    """Return a column; names may be numbers in the frame."""
    columns = getattr(frame, "column_names", None)
    labels = frame.columns if columns is None else columns
    return np.asarray(frame[next(label for label in labels if str(label) == name)])


def _number_rows(values: NDArray[Any], what: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the sentence of each row, and the ids if they are texts."""
    known = SentenceIds()
    if values.dtype.kind in "iu":
        numbers = values.astype(np.int64)
        if len(numbers) and numbers.min() < 0:
            row = int(np.argmin(numbers))
            raise DataError(f"{what} is {numbers[row]} in row {row}: give lines from 0, or texts")
    else:
        for row, value in enumerate(values.tolist()):
            if not isinstance(value, str):
                raise DataError(f"{what} is {value!r} in row {row}: give integers, or texts")
        numbers = np.array([known.number(value) for value in values.tolist()], dtype=np.int64)
    if (np.diff(numbers) < 0).any():
        row = int(np.argmax(np.diff(numbers) < 0)) + 1
        raise UsageError(
            f"{what} is {values[row]!s} in row {row}, after other sentences: sort the rows by it, "
            "as sort_values(..., kind='stable')"
        )
    return numbers, known.names


def _read_features(frame: Any, names: Sequence[str], count: int, what: str) -> FeatureArrays:
    """Return columns of numbers as dense features."""
    if not names:
        dense, sparse = np.zeros((count, 0), np.float32), SparseRows.empty(count)
        return FeatureArrays(FeatureSpace((), ()), dense, sparse, np.zeros(0, np.int64))
    columns = []
    for name in names:
        column = _read(frame, name)
        if column.dtype.kind not in "biuf":
            others = [column for column in _find_names(frame) or [] if column != name]
            raise UsageError(
                f"{what}[{name!r}] has the type {column.dtype}, no numbers: choose columns, as "
                f"columns={others}"
            )
        columns.append(column)
    return convert_features(np.column_stack(columns), names)


def _convert_nested(values: Sequence[Any], what: str) -> NBest:
    """Return the lists of nested values: texts, texts with scores, or mappings."""
    ids = SentenceIds()
    try:
        block = parse_values(map(_simplify, values), what, ListOptions(), ids)
    except FormatError as error:
        place = what if error.line is None else f"{what}[{error.line - 1}]"
        remedy = "" if error.remedy is None else f". {error.remedy}"
        message = error.message.replace("a JSON ", "a ")
        raise DataError(f"{place}: {message}{remedy}") from None
    return NBest.of_block(block, ids.names)


def _simplify(value: Any) -> Any:
    """Return a value with JSON's types; others, such as tensors, become None."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, Mapping):
        return {str(name): _simplify(part) for name, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _simplify(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple):
        return [_simplify(item) for item in value]
    dimensions = getattr(value, "ndim", None)
    if dimensions == 0 and hasattr(value, "item"):
        return value.item()
    return value.tolist() if dimensions == 1 and hasattr(value, "tolist") else None


def parse_lists(lists: Any, space: FeatureSpace) -> tuple[str, Iterable[NBestList]]:
    """Return what messages call some lists, and their blocks.

    Args:
        lists: see ``Tuner.tell``.
    """
    if isinstance(lists, str | PathLike):
        return fspath(lists), read_decoded(Path(lists), space.groups)
    if isinstance(lists, NBest):
        return lists.block.path, (lists.block,)
    if isinstance(lists, Mapping):
        required = {"sentence_ids", "hypotheses", "features"}
        if not required <= set(lists) <= required | {"names", "dense", "scores"}:
            raise UsageError(
                f"the lists have the entries {', '.join(map(str, lists)) or '(none)'}: give "
                "sentence_ids, hypotheses and features, and if you like names, dense and scores"
            )
        parsed = NBest(**{"names": space.group_names, **lists})
        return "the lists", (parsed.block,)
    if not isinstance(lists, Iterable):
        raise UsageError(
            f"the lists are a {type(lists).__name__}: give an NBest, a mapping of its arguments,"
            " the path of an n-best file, or hypotheses"
        )
    return "the hypotheses", (_collect_hypotheses(lists, space).block,)


def _collect_hypotheses(hypotheses: Iterable[Any], space: FeatureSpace) -> NBest:
    """Return lists of tuples of sentence id, text and feature values."""
    from scipy.sparse import coo_array

    ids, texts, dense = [], [], []
    columns: dict[str, int] = {}
    rows: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    for row, hypothesis in enumerate(hypotheses):
        try:
            sentence, text, features = hypothesis
        except (TypeError, ValueError):
            raise UsageError(
                f"hypothesis {row} is not a tuple of sentence id, text and feature values"
            ) from None
        ids.append(sentence)
        texts.append(text)
        if isinstance(features, Mapping):
            for name in features.keys() - dict(space.groups).keys():
                rows.append(row)
                indices.append(space.n_dense + columns.setdefault(name, len(columns)))
                values.append(features[name])
        dense.append(_flatten(features, space, row))
    if not dense:
        raise UsageError("there are no hypotheses")
    if not columns:
        return NBest(ids, texts, np.array(dense), names=space.group_names)
    whole = np.hstack([np.array(dense), np.zeros((len(dense), len(columns)))])
    whole[rows, indices] = values
    return NBest(
        ids,
        texts,
        coo_array(whole).tocsr(),
        names=[*space.group_names, *columns],
        dense=list(dict(space.groups)),
    )


def _flatten(features: Any, space: FeatureSpace, row: int) -> list[float]:
    """Return the values of the dense features of a hypothesis."""
    if not isinstance(features, Mapping):
        numbers = list(features)
    else:
        numbers = []
        for name, _ in space.groups:
            if name not in features:
                raise UsageError(f"hypothesis {row} has no value of the feature {name}")
            numbers += np.ravel(features[name]).tolist()
    if len(numbers) != space.n_dense:
        raise UsageError(
            f"hypothesis {row} has {len(numbers)} values of dense features, but the run tunes"
            f" {space.n_dense}: {', '.join(space.names[: space.n_dense])}"
        )
    return numbers
