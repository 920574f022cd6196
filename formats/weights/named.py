"""Weights as a user names them: files, or the weights themselves.

::

    run7.dense                    a file of any format that ``any_format`` knows
    run7.dense+run7.sparse        a file of dense and a file of sparse weights
    'LM0= 0.5 TM0= 0.1 0.3'       the weights themselves
    'lm=0.5 tm=0.3'               the same for features of one value

Programs write sparse weights that the format of ``FILE`` cannot hold to ``FILE.sparse``, the
companion file. Whoever reads ``FILE`` reads its companion, too.
"""

from __future__ import annotations

import re
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

from formats.errors import FormatError, quote
from formats.moses.ini_features import find_sparse_files
from formats.weights.any_format import WeightFile, parse_weights, read_weights
from formats.weights.files import read_sparse

_STRING = re.compile(r"\S+=[ \t]+\S.*|\S+=[-+.0-9]\S*([ \t]+\S+=\S+)*", re.DOTALL)


def read_named_weights(
    name: str | PathLike[str], sparse: str | PathLike[str] | None = None
) -> WeightFile:
    """Return the weights of files, or those that the name itself is: ``lm=1 tm=2``.

    The first file may have any format.

    Args:
        sparse: a file of sparse weights, which replace all others; None: those of ``FILE+SPARSE``
            or else of the companion ``FILE.sparse``, if there is one.

    Raises:
        FormatError: a file cannot be read, a weight is invalid, or the file and its companion both
            hold sparse weights.
    """
    name = fspath(name)
    paths = find_weight_files(name)
    if not paths:
        written = parse_weights(name.encode("utf-8", "surrogateescape"), quote(name))
        return written.with_sparse(sparse)
    file = read_weights(paths[0])
    if sparse is None and len(paths) == 1:
        return _with_companion(file)
    return file.with_sparse(paths[-1] if sparse is None else sparse)


def find_weight_files(name: str) -> tuple[Path, ...]:
    """Return the files that hold the weights; none if the name itself is the weights."""
    path = Path(name)
    if _exists(path):
        return (path,)
    if _STRING.fullmatch(name):
        return ()
    first, plus, second = name.rpartition("+")
    if first and plus and _exists(Path(second)):
        return Path(first), Path(second)
    return (path,)


def find_directory(name: str) -> Path | None:
    """Return the directory that a name is; None if it names files, or is the weights."""
    return next((path for path in find_weight_files(name) if path.is_dir()), None)


def sparse_companion(path: str | PathLike[str]) -> Path:
    """Return the file of sparse weights beside a file that cannot hold them."""
    return Path(f"{fspath(path)}.sparse")


def length_companion(path: str | PathLike[str]) -> Path:
    """Return the file that records the length exponent of weights beside them."""
    return Path(f"{fspath(path)}.length")


def _with_companion(file: WeightFile) -> WeightFile:
    """Return weights with the sparse ones of ``FILE.sparse``, if both are files.

    Raises:
        FormatError: the file holds other sparse weights itself, or is a ``moses.ini`` that does not
            name the companion, which the decoder would not read.
    """
    beside = sparse_companion(file.path)
    if not (Path(file.path).is_file() and beside.is_file()):
        return file
    if file.ini is not None and any(map(beside.samefile, find_sparse_files(file.ini))):
        return file
    weights = read_sparse(beside)
    known = file.sparse if file.ini is None else file.all_sparse
    if known == weights:
        return file
    if known or file.ini is not None:
        holds = "holds sparse weights itself" if known else "does not name it in [weight-file]"
        raise FormatError(
            f"{beside} is beside this file, which {holds}",
            path=file.path,
            remedy=f"Remove {beside} if it belongs to other weights, or say which file of sparse"
            f" weights counts: {file.path}+SPARSE",
        )
    return replace(file, second=weights)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # many weights are too long for the name of a file
        return False
