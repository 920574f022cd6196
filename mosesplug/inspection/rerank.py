"""n-best lists scored anew: other weights, and further features from columns of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from formats.decimals import parse_number
from formats.errors import FormatError
from formats.nbest.files import NBestList, read_nbest_blocks
from formats.text import open_text
from mosesplug.errors import UsageError
from mosesplug.learning.lists import dense_by_weights
from mosesplug.learning.weights import list_model_scores, read_named_weights

__all__ = ["AddedFeature", "least_risk", "parse_added", "rescored", "sentences_of"]


_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class AddedFeature:
    """A feature that a file has a value of for every hypothesis, in the order of the list."""

    name: str
    path: Path


def parse_added(text: str) -> AddedFeature:
    """``NAME=FILE``, or ``NAME= FILE`` as lists spell names.

    Raises:
        UsageError: it is not of that form.
    """
    name, equals, path = text.partition("=")
    if not (equals and name and path.strip()) or "_" in name or any(map(str.isspace, name)):
        raise UsageError(
            f"--add-feature {text!r}: give NAME=FILE, a name without blanks and underscores"
        )
    return AddedFeature(name, Path(path.strip()))


def rescored(
    path: Path,
    weights: Path,
    *,
    sparse: Path | None = None,
    names: Sequence[str] | None = None,
    added: Sequence[AddedFeature] = (),
) -> Iterator[NBestList]:
    """The blocks of a list, with further features, scored by other weights.

    Args:
        path: the list.
        weights: a file of any kind that holds weights of all its dense features and the added ones.
        sparse: a file of sparse weights, instead of those that the first file has or names; what
            it lacks counts as 0.
        names: of the columns of a list without labels, one each.
        added: further features.

    Raises:
        FormatError: a file cannot be read, or a column has not a number for each hypothesis.
        UsageError: an added feature has the name of another.
    """
    given = read_named_weights(weights, sparse)
    dense = dense_by_weights(path, given)
    if dense is not None:
        dense = tuple(name for name in dense if name not in {feature.name for feature in added})
    with ExitStack() as stack:
        columns = [
            _Column(feature.path, stack.enter_context(open_text(feature.path))) for feature in added
        ]
        rows = 0
        for block in read_nbest_blocks(path, names=names, dense=dense):
            values = [column.take(len(block), path) for column in columns]
            rows += len(block)
            _check_names([name for name, _ in block.groups], added, path)
            groups = (*block.groups, *((feature.name, 1) for feature in added))
            columns_of_all = np.column_stack([block.dense, *values]).astype(np.float32)
            wider = replace(block, groups=groups, dense=np.ascontiguousarray(columns_of_all))
            yield replace(wider, scores=list_model_scores(wider, given))
        for column in columns:
            column.end(rows, path)


def _check_names(listed: Sequence[str], added: Sequence[AddedFeature], path: Path) -> None:
    """See that one weight is not taken for two features.

    Raises:
        UsageError: an added feature has the name of another.
    """
    taken = set(listed)
    for feature in added:
        if feature.name in taken:
            raise UsageError(
                f"--add-feature {feature.name}={feature.path}: there is a feature {feature.name} "
                f"already, in {path} or added: give another name"
            )
        taken.add(feature.name)


class _Column:
    """A file of one number a line, read as its list is."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self._lines = 0

    def take(self, count: int, listed: Path) -> NDArray[np.float64]:
        """The next values, float64 ``[count]``."""
        values = np.empty(count)
        for row in range(count):
            line = self._file.readline()
            self._lines += 1
            if not line:
                raise self._error(
                    f"it ends before the hypotheses of {listed} do",
                    "Give a value for each hypothesis, in the order of the list",
                )
            values[row] = parse_number(line.strip())
            if not abs(values[row]) <= _LARGEST:
                said = line.strip()[:40].decode("utf-8", "backslashreplace")
                raise self._error(
                    f"{said!r} is no number that a feature can have",
                    "Give one finite number a line",
                )
        return values

    def end(self, rows: int, listed: Path) -> None:
        """See that nothing is left."""
        if self._file.readline():
            self._lines += 1
            raise self._error(
                f"there are more values than {listed} has hypotheses ({rows})",
                "Give a value for each hypothesis, in the order of the list",
            )

    def _error(self, message: str, remedy: str) -> FormatError:
        return FormatError(message, path=self._path, line=self._lines, remedy=remedy)


def sentences_of(block: NBestList) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each sentence with its rows, the highest score first; of equals the first."""
    bounds = np.flatnonzero(np.diff(block.sentence_ids, prepend=-1, append=-1))
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        order = np.argsort(-block.scores[first:last], kind="stable")
        yield int(block.sentence_ids[first]), first + order


def least_risk(block: NBestList, rows: NDArray[np.int64], scale: float) -> int:
    """The place among some rows of the translation of most expected BLEU+1 over all of them.

    Minimum Bayes risk over a list (Kumar & Byrne 2004); ``mosesplug mbr`` offers more of the kind.

    Args:
        block: the lists.
        rows: int64, of one sentence, the highest score first.
        scale: of the scores, before they become probabilities.
    """
    from mosesplug.forest.mbr.consensus import expected_bleu, first_of_best, normalised
    from mosesplug.forest.ngrams.bags import bags

    found = bags([block.text(row).split() for row in rows.tolist()])
    return first_of_best(expected_bleu(found, normalised(scale * block.scores[rows])))
