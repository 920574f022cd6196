"""Weights as a user names them: a file, or the weights themselves.

::

    run7.dense                    a file of any format that ``any_format`` knows
    'LM0= 0.5 TM0= 0.1 0.3'       the weights themselves
    'lm=0.5 tm=0.3'               the same for features of one value
"""

from __future__ import annotations

import re
from pathlib import Path

from formats.weights.any_format import WeightFile, parse_weights, read_weights

__all__ = ["find_weight_file", "read_named_weights"]

_STRING = re.compile(r"\S+=[ \t]+\S.*|\S+=[-+.0-9]\S*([ \t]+\S+=\S+)*", re.DOTALL)


def read_named_weights(name: str) -> WeightFile:
    """Return the weights of a file, or those that the name itself is: ``lm=1 tm=2``.

    The file may have any format.

    Raises:
        FormatError: the file cannot be read, or a weight is invalid.
    """
    path = find_weight_file(name)
    if path is None:
        return parse_weights(name.encode("utf-8", "surrogateescape"), f"'{name}'")
    return read_weights(path)


def find_weight_file(name: str) -> Path | None:
    """Return the file that holds the weights; None if the name itself is the weights."""
    path = Path(name)
    return None if _STRING.fullmatch(name) and not _exists(path) else path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # many weights are too long for the name of a file
        return False
