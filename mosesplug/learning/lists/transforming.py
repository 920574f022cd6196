"""Change the texts of hypotheses by a command before they are scored."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS
from mosesplug.decoders.processes.line_filter import LineFilter
from mosesplug.errors import UsageError
from mosesplug.learning.lists.steps import ListStep
from mosesplug.settings.programs import check_transform

BPE = "bpe"
"""The command that joins subwords at ``@@``."""


class Transform(ListStep):
    """Replaces the texts of lists by what a command makes of them.

    The command gets the texts of a list, one a line, and writes a line for each. It runs once for
    each list, and may buffer its output.

    Args:
        command: a shell command, or ``bpe`` to join subwords at ``@@``.
    """

    def __init__(self, command: str) -> None:
        self._command = command

    def stream(self, blocks: Iterator[NBestList]) -> Iterator[NBestList]:
        """Yield blocks with changed texts.

        Raises:
            DecoderError: the command failed, or wrote another number of lines than it got.
        """
        if self._command == BPE:
            for block in blocks:
                texts = _list_texts(block)
                yield _with_texts(block, [join_subwords(text) for text in texts])
            return
        waiting: deque[NBestList] = deque()
        with closing(LineFilter(self._command, "command of {--transform}")) as command:
            for block in blocks:
                command.send(_list_texts(block))
                waiting.append(block)
                yield from _take_ready(waiting, command)
            command.finish()
            yield from _take_ready(waiting, command)

    def pair(self, blocks: Iterator[NBestList]) -> Iterator[tuple[NBestList, NBestList]]:
        """Yield each block with its copy of changed texts; errors as for ``stream``."""
        waiting: deque[NBestList] = deque()

        def note() -> Iterator[NBestList]:
            for block in blocks:
                waiting.append(block)
                yield block

        for changed in self.stream(note()):
            yield waiting.popleft(), changed


def pair_transformed(
    blocks: Iterator[NBestList], command: str | None
) -> Iterator[tuple[NBestList, NBestList]]:
    """Yield each block with its copy that has the texts that a command makes of it.

    Args:
        command: the value of ``--transform``; None: the texts stay.
    """
    checked = check_transform(command)
    if checked is None:
        return ((block, block) for block in blocks)
    return Transform(checked).pair(blocks)


def join_subwords(text: bytes) -> bytes:
    """Return a text with the subwords of byte pair encoding joined, as ``ho@@ use``."""
    return text.replace(b"@@ ", b"").removesuffix(b"@@")


def _take_ready(waiting: deque[NBestList], command: LineFilter) -> Iterator[NBestList]:
    while waiting and (lines := command.receive(len(waiting[0]))) is not None:
        yield _with_texts(waiting.popleft(), lines)


def _list_texts(block: NBestList) -> list[bytes]:
    if not block.has_texts:
        raise UsageError(f"{{--transform}} changes texts, but {block.path} has none")
    buffer = block.buffer.tobytes()
    pairs = zip(block.text_starts.tolist(), block.text_ends.tolist(), strict=True)
    texts = [buffer[start:end] for start, end in pairs]
    if b"\n" in b"".join(texts):
        row = next(row for row, text in enumerate(texts) if b"\n" in text)
        raise FormatError(
            "the hypothesis has a line break",
            path=block.path,
            line=int(block.lines[row]),
            remedy="{--transform} takes one line for each hypothesis: replace the line break",
        )
    return texts


def _with_texts(block: NBestList, texts: list[bytes]) -> NBestList:
    """Return a block with other texts; what follows the scores stays in the buffer."""
    texts = [text.strip(BLANKS) for text in texts]
    ends = len(block.buffer) + np.cumsum([0, *map(len, texts)], dtype=np.int64)
    added = np.frombuffer(b"".join(texts), dtype=np.uint8)
    return replace(
        block,
        buffer=np.concatenate([block.buffer, added]),
        text_starts=ends[:-1],
        text_ends=ends[1:],
    )
