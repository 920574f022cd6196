"""Score n-best lists again, with other weights and additional features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from formats.decimals import parse_number
from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from formats.text import open_text
from formats.weights.any_format import WeightFile
from mosesplug.errors import UsageError
from mosesplug.learning.list_blocks import read_file_blocks
from mosesplug.learning.lists import select_dense_features
from mosesplug.learning.weights import score_hypotheses
from mosesplug.settings.lengths import LengthRange
from mosesplug.settings.lists import NO_SETTINGS, ListSettings

__all__ = [
    "AddedFeature",
    "choose_least_risk",
    "parse_added_feature",
    "rank_sentences",
    "score_again",
]

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class AddedFeature:
    """An additional feature.

    Attributes:
        name: its name.
        values: one for each hypothesis in order: a file with one number a line, or float64
            ``[n_hyps]``.
    """

    name: str
    values: Path | NDArray[np.float64]


def parse_added_feature(text: str) -> AddedFeature:
    """Return the feature of ``NAME=FILE``, or of ``NAME= FILE`` as names are written in lists.

    Raises:
        UsageError: the text has another form.
    """
    name, equals, path = text.partition("=")
    if not (equals and name and path.strip()) or "_" in name or any(map(str.isspace, name)):
        raise UsageError(
            f"--add-feature {text!r}: give NAME=FILE, a name without blanks and underscores"
        )
    return AddedFeature(name, Path(path.strip()))


def score_again(
    lists: Path | NBestList,
    weights: WeightFile,
    settings: ListSettings = NO_SETTINGS,
    *,
    added: Sequence[AddedFeature] = (),
    ids: SentenceIds | None = None,
    lengths: LengthRange | None = None,
) -> Iterator[NBestList]:
    """Yield the blocks of an n-best list with additional features and new model scores.

    Args:
        lists: the list, or its file.
        weights: those of all dense and all added features; sparse ones that are missing count as 0.
        settings: how the list is read. The dense features of a list that names every value are
            those that ``weights`` names, unless the settings name them.
        added: additional features.
        ids: numbers sentence ids that are texts.
        lengths: an exponent of the length that scores are divided by; None: they are not.

    Raises:
        FormatError: a file cannot be read, or an added feature lacks values.
        UsageError: two features have the same name.
    """
    path = Path(lists.path) if isinstance(lists, NBestList) else lists
    dense = select_dense_features(lists, weights, settings) if isinstance(lists, Path) else None
    if dense is not None:
        dense = tuple(name for name in dense if name not in {feature.name for feature in added})
    with ExitStack() as stack:
        columns = [_open_column(feature, stack) for feature in added]
        rows = 0
        for block in read_file_blocks(lists, settings, dense=dense, ids=ids):
            values = [column.take(len(block), path) for column in columns]
            rows += len(block)
            _check_names([name for name, _ in block.groups], added, path)
            groups = (*block.groups, *((feature.name, 1) for feature in added))
            columns_of_all = np.column_stack([block.dense, *values]).astype(np.float32)
            wider = replace(block, groups=groups, dense=np.ascontiguousarray(columns_of_all))
            yield replace(wider, scores=score_hypotheses(wider, weights, lengths))
        for column in columns:
            column.end(rows, path)


def _open_column(feature: AddedFeature, stack: ExitStack) -> _Column:
    if isinstance(feature.values, Path):
        return _FileColumn(feature.values, stack.enter_context(open_text(feature.values)))
    return _ArrayColumn(feature.name, feature.values)


def _check_names(listed: Sequence[str], added: Sequence[AddedFeature], path: Path) -> None:
    """Check that every feature has a name of its own."""
    taken = set(listed)
    for feature in added:
        if feature.name in taken:
            is_file = isinstance(feature.values, Path)
            option = f"--add-feature {feature.name}={feature.values}" if is_file else "add_features"
            raise UsageError(
                f"{option}: {path} or another --add-feature has a feature {feature.name} already: "
                "give another name"
            )
        taken.add(feature.name)


class _Column(Protocol):
    """The values of a feature, taken block by block."""

    def take(self, count: int, listed: Path) -> NDArray[np.float64]:
        """Return the next values, float64 ``[count]``."""

    def end(self, rows: int, listed: Path) -> None:
        """Check that all values were taken."""


class _ArrayColumn:
    """Values in memory."""

    def __init__(self, name: str, values: NDArray[np.float64]) -> None:
        self._name = name
        self._values = values
        self._taken = 0

    def take(self, count: int, listed: Path) -> NDArray[np.float64]:
        """Return the next values, float64 ``[count]``."""
        values = self._values[self._taken : self._taken + count]
        self._taken += count
        if len(values) < count:
            raise self._error("more")
        return values

    def end(self, rows: int, listed: Path) -> None:
        """Check that all values were taken."""
        if len(self._values) != rows:
            raise self._error(str(rows))

    def _error(self, hypotheses: str) -> UsageError:
        return UsageError(
            f"the feature {self._name} has {len(self._values)} values for {hypotheses} hypotheses: "
            "give one for each"
        )


class _FileColumn:
    """A file of one number a line, read as its list is."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._lines = 0

    def take(self, count: int, listed: Path) -> NDArray[np.float64]:
        """Read the next values, float64 ``[count]``."""
        values = np.empty(count)
        for row in range(count):
            line = self._file.readline()
            self._lines += 1
            if not line:
                raise self._error(
                    f"the file ends before the hypotheses of {listed}",
                    "Give a value for each hypothesis, in the order of the list",
                )
            values[row] = parse_number(line.strip())
            if not abs(values[row]) <= _LARGEST:
                text = line.strip()[:40].decode("utf-8", "backslashreplace")
                raise self._error(
                    f"{text!r} is not a number that a feature can have",
                    "Give one finite number a line",
                )
        return values

    def end(self, rows: int, listed: Path) -> None:
        """Check that all values were read."""
        if self._file.readline():
            self._lines += 1
            raise self._error(
                f"there are more values than {listed} has hypotheses ({rows})",
                "Give a value for each hypothesis, in the order of the list",
            )

    def _error(self, message: str, remedy: str) -> FormatError:
        return FormatError(message, path=self._path, line=self._lines, remedy=remedy)


def rank_sentences(block: NBestList) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each sentence with its rows, the highest score first; ties keep their order."""
    bounds = np.flatnonzero(np.diff(block.sentence_ids, prepend=-1, append=-1))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        order = np.argsort(-block.scores[first:last], kind="stable")
        yield int(block.sentence_ids[first]), first + order


def choose_least_risk(block: NBestList, rows: NDArray[np.int64], scale: float) -> int:
    """Return the position in ``rows`` of the hypothesis with the highest expected BLEU+1.

    This is minimum Bayes risk over a list (Kumar & Byrne 2004).

    Args:
        block: the lists.
        rows: int64, the rows of one sentence, the highest score first.
        scale: scale of the model scores.
    """
    from mosesplug.forest.mbr import expected_bleu, find_best, softmax
    from mosesplug.forest.ngrams.bags import count_bags

    found = count_bags([block.text(row).split() for row in rows.tolist()])
    return find_best(expected_bleu(found, softmax(scale * block.scores[rows])))
