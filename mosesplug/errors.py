"""The exceptions that mosesplug raises; the command line turns them into one line and a code.

::

    MosesplugError
    ├── UsageError            the call itself is wrong            (exit code 2)
    └── DataError             the call is fine, the data are not  (exit code 1)
        ├── StoreError        the n-best store cannot serve
        │   ├── StoreMismatch     it was made from other input, references or configuration
        │   └── StoreFull         no room on the disk
        ├── DecoderError      the decoder died, or wrote what cannot be used
        └── OptimizerError    no usable weights can come of this problem

``formats.FormatError`` (a file that cannot be read) stands beside ``DataError``: exit code 1.
"""

from __future__ import annotations

__all__ = [
    "DataError",
    "DecoderError",
    "MosesplugError",
    "OptimizerError",
    "StoreError",
    "StoreFull",
    "StoreMismatch",
    "UsageError",
]


class MosesplugError(Exception):
    """Anything mosesplug refuses, said in one line that names the remedy."""


class UsageError(MosesplugError):
    """The call itself is wrong: an unknown option, two that exclude each other."""


class DataError(MosesplugError):
    """The call is fine, the data are not."""


class StoreError(DataError):
    """The n-best store cannot do what was asked."""


class StoreMismatch(StoreError):
    """The store was made from other input, references, features or configuration."""


class StoreFull(StoreError):
    """The disk has no room; finished iterations are kept."""


class DecoderError(DataError):
    """The decoder died, or what it wrote cannot be used."""


class OptimizerError(DataError):
    """No usable weights can come of this problem (NaN features, nothing to tune)."""
