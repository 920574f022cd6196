"""n-best lists in the forms in which ``Tuner.tell`` takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from formats.nbest.block import NBestList
from mosesplug.api.nbest import NBest
from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.tuning.decoding.lists import read_decoded

__all__ = ["parse_lists"]


def parse_lists(lists: Any, space: FeatureSpace) -> tuple[str, Iterable[NBestList]]:
    """Return what messages call some lists, and their blocks.

    Args:
        lists: see ``Tuner.tell``.
        space: the dense features of the run.

    Raises:
        UsageError: they have no such form.
        DataError: a value is not finite, or a sentence id is negative.
        FormatError: a file cannot be read.
    """
    if isinstance(lists, str | PathLike):
        return fspath(lists), read_decoded(Path(lists), space.groups)
    if isinstance(lists, NBest):
        return lists.block.path, (lists.block,)
    if isinstance(lists, Mapping):
        try:
            found = NBest(**{"names": space.group_names, **lists})
        except TypeError as error:
            raise UsageError(f"the lists cannot be used as arguments of NBest: {error}") from None
        return "the lists", (found.block,)
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
    for row, each in enumerate(hypotheses):
        try:
            sentence, text, features = each
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
        found = list(features)
    else:
        found = []
        for name, _ in space.groups:
            if name not in features:
                raise UsageError(f"hypothesis {row} has no value of the feature {name}")
            found += np.ravel(features[name]).tolist()
    if len(found) != space.n_dense:
        raise UsageError(
            f"hypothesis {row} has {len(found)} values of dense features, but the run tunes"
            f" {space.n_dense}: {', '.join(space.names[: space.n_dense])}"
        )
    return found
