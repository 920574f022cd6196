"""Lists that name every value, as those of Joshua and cdec: which features are dense.

Where weights are given, their names say it: those of the weights are dense, whatever the lists
have, so that lists of one system are read alike. Elsewhere the lists are counted
(``formats.nbest.dense``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from formats.errors import FormatError
from formats.nbest.dense import dense_features, is_named
from mosesplug.errors import UsageError
from mosesplug.learning.start import GivenWeights

__all__ = ["dense_by_weights", "dense_given"]


def dense_given(paths: Sequence[Path], text: str | None) -> tuple[str, ...] | None:
    """The dense features of some lists; None for lists that do not name every value.

    Args:
        paths: the lists.
        text: names between commas, as the command line gives them; None: find them.

    Raises:
        UsageError: a name is empty or there twice.
        FormatError: a list is none, or lists are spelled differently.
    """
    if text is None:
        return dense_features(paths)
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"--dense={text}: a name is empty")
    if len(set(names)) < len(names):
        raise UsageError(f"--dense={text}: a name is there twice")
    return names


def dense_by_weights(path: Path, given: GivenWeights) -> tuple[str, ...] | None:
    """The dense features of a list: those that weights are given of; None as ``dense_given``.

    Raises:
        FormatError: the list cannot be read, or has none of the features of these weights.
    """
    if not is_named(path):
        return None
    listed = dense_features([path])
    names = given.dense_names
    if not names:  # numbers alone: one for each feature, in the order of the list
        return listed
    if not set(names) & set(listed or ()):
        raise FormatError(
            f"its features are {', '.join(listed or ())[:200]}, and the weights are of "
            f"{', '.join(names)[:200]}",
            path=path,
            remedy=f"Give the weights of the system that made the list, not {given.file.path}",
        )
    return names
