"""A decoder's fault with the iteration that it spoilt, and the way to go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mosesplug.errors import DecoderError
from mosesplug.store import NBestStore

__all__ = ["naming_the_iteration"]

_GO_ON = (
    "Finished iterations are kept. Once the decoder is mended, the same command with --continue"
    " goes on."
)


@contextmanager
def naming_the_iteration(store: NBestStore) -> Iterator[None]:
    """Say of a decoder that fails in the block which iteration it was, and what is kept.

    Args:
        store: of the run; the iteration is the first that it has no result of.

    Raises:
        DecoderError: of the same kind as that in the block.
    """
    try:
        yield
    except DecoderError as error:
        iteration = 1 + sum(record.result is not None for record in store.iterations())
        raise type(error)(f"iteration {iteration}: {error}\n{_GO_ON}") from error
