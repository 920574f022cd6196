"""Fingerprints: short digests that tell whether two runs have the same input.

A store holds lists of one input and one configuration. Whoever opens it states the fingerprints of
what it uses, and a difference is rejected before anything is mixed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from os import PathLike
from pathlib import Path

from mosesplug.errors import StoreMismatch

_DIGEST_BYTES = 16


def fingerprint_files(paths: Iterable[str | PathLike[str]]) -> str:
    """Return the hexadecimal digest of the contents of files, in order.

    Their names do not matter.

    Raises:
        OSError: a file cannot be read.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for path in paths:
        with Path(path).open("rb") as file:
            digest.update(
                hashlib.file_digest(
                    file, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)
                ).digest()
            )
    return digest.hexdigest()


def check_fingerprints(
    stored: Mapping[str, str],
    given: Mapping[str, str],
    *,
    replace: Collection[str] = (),
    path: str | PathLike[str],
) -> dict[str, str]:
    """Return the fingerprints that a store holds after ``given`` was required of it.

    Names that the store lacks are added, those in ``replace`` overwritten.

    Raises:
        StoreMismatch: a fingerprint differs; the message names each, and the remedy.
    """
    differing = [
        name
        for name, value in given.items()
        if name not in replace and stored.get(name, value) != value
    ]
    if differing:
        details = "; ".join(
            f"{name}: stored {stored[name]}, given {given[name]}" for name in differing
        )
        raise StoreMismatch(
            f"the n-best store at {path} was made with different "
            f"{' and different '.join(differing)} ({details}). Use the same as "
            "before, or start in an empty directory"
        )
    return {**stored, **given}
