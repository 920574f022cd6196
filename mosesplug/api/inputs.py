"""References, features and starting weights that a caller has as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.references import read_reference, read_references
from formats.text import write_atomic
from formats.weights.any_format import WeightFile
from formats.weights.files import ShowWeights, WeightGroup
from formats.weights.json_file import format_json_weights
from mosesplug.api.arrays import SentenceNumbers, encode_texts
from mosesplug.api.weights import WeightTable
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.weights import StartingWeights, arrange_weights
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = [
    "InitialWeights",
    "arrange_initial",
    "arrange_references",
    "load_references",
    "make_weight_file",
    "name_references",
    "place_references",
    "place_start",
    "unknown_feature_error",
]

_FORMS = "{} must be a file, a text for each sentence, or several sequences of texts"


def load_references(references: Any, what: str = "references") -> list[list[bytes]]:
    """Return references as ``[reference][line]``.

    Args:
        references: a file or the prefix of several; several ``Path`` objects; a sequence of texts,
            one for each sentence; or several such sequences, one for each reference.
        what: the argument, for messages.

    Raises:
        UsageError: it is nothing of this.
        FormatError: a file cannot be read, or is empty.
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
    if all(isinstance(each, Path) for each in references):
        return _read_files(references)
    if all(isinstance(each, str | bytes) for each in references):
        return [encode_texts(references, what)]
    if any(isinstance(each, str | bytes | Mapping) for each in references):
        raise UsageError(_FORMS.format(what))
    found = [encode_texts(each, f"{what}[{place}]") for place, each in enumerate(references)]
    for place, lines in enumerate(found):
        if len(lines) != len(found[0]):
            raise DataError(
                f"{what}[{place}] has {len(lines)} sentences, and {what}[0] has {len(found[0])}: "
                "give [reference][sentence]"
            )
    if not found[0]:
        raise DataError(f"{what}: there is no reference translation")
    return found


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
        sentences: the sentences that need references.
        what: the argument, for messages.

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
        found = references[sentence]
        if not isinstance(found, str | bytes | Sequence):
            raise UsageError(f"{what}[{sentence!r}] is {found!r}: give one or several texts")
        texts = [found] if isinstance(found, str | bytes) else found
        every.append(encode_texts(texts, f"{what}[{sentence!r}]"))
        if not every[-1] or len(every[-1]) != len(every[0]):
            raise DataError(
                f"{what}[{sentence!r}] has {len(every[-1])} texts, and that of "
                f"{sentences.ids[0]!r} has {len(every[0])}: give each sentence the same number"
            )
    return [list(lines) for lines in zip(*every, strict=True)]


def _read_files(paths: Sequence[Path]) -> list[list[bytes]]:
    if len(paths) == 1:
        found = read_references(paths[0])
    else:
        found = [read_reference(path) for path in paths]
    if not found[0]:
        raise FormatError(
            "there is no reference in it",
            path=paths[0],
            remedy="Give the reference translation, one sentence a line",
        )
    return found


InitialWeights = (
    Mapping[str, float | tuple[float, ...]]
    | Mapping[str, float]
    | Sequence[float]
    | NDArray[Any]
    | str
    | PathLike[str]
)
"""Weights by name, a vector, or a file of any format."""


def arrange_initial(
    initial: Any, space: FeatureSpace, columns: NDArray[np.int64] | None = None
) -> StartingWeights:
    """Return starting weights in the order of a feature space.

    Args:
        initial: a mapping of names to weights, in which sparse features may be missing; or a
            vector of all weights, or of the dense ones.
        space: the features.
        columns: int64 ``[n_features]``, the entry of a whole vector that belongs to each feature;
            None: their order.

    Raises:
        UsageError: an unknown name, a missing one, or another number of weights.
        DataError: a weight is not finite.
        FormatError: a table of weights lacks a dense feature.
    """
    if isinstance(initial, WeightTable):
        return arrange_weights(initial.file, space)
    if isinstance(initial, Mapping):
        return StartingWeights(_by_name(initial, space))
    vector = _check_vector(initial)
    if len(vector) == len(space):
        return StartingWeights(vector if columns is None else vector[columns])
    if len(vector) == space.n_dense and columns is None:
        return StartingWeights(np.append(vector, np.zeros(space.n_sparse)))
    raise UsageError(
        f"initial has {len(vector)} weights for {len(space)} features: give one for each of "
        f"{', '.join([*space.group_names, *space.sparse][:20])}"
    )


def make_weight_file(initial: Any, what: str = "initial") -> WeightFile:
    """Return weights as a file has them.

    Args:
        initial: a mapping of names to weights, or a vector of the dense ones.
        what: the argument, for messages.

    Raises:
        UsageError: it is neither.
        DataError: a weight is not finite.
    """
    if isinstance(initial, WeightTable):
        return initial.file
    if not isinstance(initial, Mapping):
        return WeightFile(what, "weights.txt", numbers=tuple(_check_vector(initial, what).tolist()))
    groups, sparse = [], {}
    for name, value in initial.items():
        values = _check_values(name, value, what)
        if "_" in name and len(values) == 1:
            sparse[name] = values[0]
        else:
            groups.append(WeightGroup(name, values))
    return WeightFile(what, "dense", ShowWeights(tuple(groups)), sparse)


def _by_name(initial: Mapping[str, Any], space: FeatureSpace) -> NDArray[np.float64]:
    vector = np.full(len(space), np.nan)
    vector[space.n_dense :] = 0.0
    first, groups = 0, {}
    for name, width in space.groups:
        groups[name] = (first, width)
        first += width
    for place, (name, value) in enumerate(initial.items()):
        values = _check_values(name, value)
        begin, width = groups.get(name, (space.columns.get(name, -1), 1))
        if begin < 0:
            raise unknown_feature_error("initial", name, place, [*groups, *space.sparse])
        if len(values) != width:
            raise UsageError(f"initial[{name!r}] has {len(values)} weights for {width} values")
        vector[begin : begin + width] = values
    if np.isnan(vector).any():
        column = int(np.argmax(np.isnan(vector)))
        raise UsageError(f"initial has no weight of {space.group_names[column]}")
    return vector


def unknown_feature_error(what: str, name: str, place: int, known: Sequence[str]) -> UsageError:
    """Return the error of a weight that no feature has.

    Args:
        what: the argument, a mapping of names to weights.
        name, place: the name, and its position in the mapping.
        known: names of the features.
    """
    return UsageError(
        f"{what}: there is no feature {name!r} (entry {place}); known: {', '.join(known[:30])}"
    )


def _check_values(name: str, value: Any, what: str = "initial") -> tuple[float, ...]:
    """Return one or several finite weights."""
    try:
        values = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise UsageError(f"{what}[{name!r}] is {value!r}: give one or several numbers") from None
    if values.ndim != 1:
        raise UsageError(f"{what}[{name!r}] has the shape {values.shape}: give numbers")
    if not np.isfinite(values).all():
        raise DataError(f"{what}[{name!r}] is {value}: give finite numbers")
    return tuple(values.tolist())


def _check_vector(initial: Any, what: str = "initial") -> NDArray[np.float64]:
    """Return a vector of finite weights."""
    try:
        vector = np.asarray(initial, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"{what} must be a mapping of names to weights, a vector, or a path"
        ) from None
    if vector.ndim != 1:
        raise UsageError(f"{what} has the shape {vector.shape}: give one weight for each feature")
    if not np.isfinite(vector).all():
        place = int(np.argmin(np.isfinite(vector)))
        raise DataError(f"{what}[{place}] is {vector[place]}: give finite numbers")
    return vector


def place_references(references: Any, workspace: Workspace, *, keep: bool) -> str:
    """Return the path of references; texts are written into the working directory.

    Args:
        references: a file or the prefix of several, or texts as for ``mosesplug.optimize``.
        workspace: the working directory.
        keep: whether files of an earlier run must stay as they are.

    Raises:
        UsageError: they are something else.
        DataError: the earlier run had others.
    """
    if isinstance(references, str | PathLike):
        return fspath(references)
    for number, lines in enumerate(load_references(references)):
        text = b"".join(line + b"\n" for line in lines)
        _place(workspace.references(number), text, "references", keep=keep)
    return fspath(workspace.directory / "references")


def place_start(features: Any, initial: Any, workspace: Workspace, *, keep: bool) -> str:
    """Return the path of a file of weights; write one if values are given.

    Args:
        features: names, pairs of name and number of values, a mapping to initial weights, or None.
        initial: starting weights: a mapping, a vector, the path of a file, or None.
        workspace: the working directory.
        keep: whether the file of an earlier run must stay as it is.

    Raises:
        UsageError: they are something else, or do not fit together.
        DataError: the earlier run had others.
    """
    if isinstance(initial, str | PathLike):
        if features is not None:
            raise UsageError("initial is a file, which names the features: leave out features")
        return fspath(initial)
    sparse: Mapping[str, float] = {}
    if isinstance(features, Mapping):
        if initial is not None:
            raise UsageError("features are given with their weights: leave out initial")
        values = {name: _check_values(name, value, "features") for name, value in features.items()}
        space = _make_space([(name, len(weights)) for name, weights in values.items()])
        vector = np.array([weight for weights in values.values() for weight in weights])
    elif features is None:
        file = make_weight_file(initial)
        if not file.show.names:
            raise UsageError("initial names no dense features: give features, too")
        space = FeatureSpace.of_names(file.show.names)
        vector, sparse = np.array(file.show.values), file.sparse
    else:
        space = _make_space(features)
        vector = np.ones(space.n_dense)
        if initial is not None:
            vector = arrange_initial(initial, space).weights
    numbers = iter(vector.tolist())
    groups = [(name, [next(numbers) for _ in range(width)]) for name, width in space.groups]
    text = format_json_weights(groups, sparse)
    _place(workspace.start_weights, text, "features or starting weights", keep=keep)
    return fspath(workspace.start_weights)


def _make_space(features: Any) -> FeatureSpace:
    """Return the dense features of names, or of pairs of name and number of values."""
    if isinstance(features, str) or not isinstance(features, Sequence):
        raise UsageError(
            "features must be names, pairs of name and number of values, or a mapping of names to"
            " initial weights"
        )
    names: list[str] = []
    for place, each in enumerate(features):
        name, width = each if isinstance(each, tuple) and len(each) == 2 else (each, 1)
        if not isinstance(name, str) or not name or any(map(str.isspace, name)):
            raise UsageError(f"features[{place}] is {each!r}: give a name without blanks")
        if not isinstance(width, int) or width < 1:
            raise UsageError(f"features[{place}] is {each!r}: give a number of values from 1")
        names += [name] * width
    if not names:
        raise UsageError("features is empty: name at least one feature")
    space = FeatureSpace.of_names(names)
    groups = [group for group, _ in space.groups]
    for group in groups:
        if groups.count(group) > 1:
            raise UsageError(f"features names {group} twice: name each feature once")
    return space


def _place(path: Path, text: bytes, what: str, *, keep: bool) -> None:
    if path.is_file() and path.read_bytes() == text:
        return
    if keep:
        raise DataError(
            f"the run in {path.parent} was begun with other {what} ({path}): give the same or none"
            " to continue it, or overwrite=True to replace it"
        )
    write_atomic(path, text)
