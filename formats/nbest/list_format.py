"""The interface of all formats of n-best lists.

A format turns a file into blocks of arrays. ``formats.nbest.registry`` finds the format of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from formats.errors import FormatError, quote
from formats.nbest.block import NBestList
from formats.pipes import InputFile, is_read_once
from formats.text import StrPath, open_text

INTEGER_ID_NAMES = ("id", "sentence_id")
"""Names of the column or the key whose sentence ids may be integers."""

ID_NAMES = (
    *("id", "utt_id", "utt", "uttid", "utterance", "utterance_id", "key"),
    "sentence_id",
)
"""Names of the column or the key with the sentence id."""

TEXT_NAMES = (
    *("hyp", "hypothesis", "pred_text"),
    *("generated_text", "translation_text", "summary_text", "text"),
)
"""Names of the column or the key with the hypothesis, also those of NeMo and Hugging Face.

``text`` comes last: beside another one it is the source or the reference.
"""


@dataclass(frozen=True)
class ListOptions:
    """How to read lists. A format ignores the options that it does not need.

    Attributes:
        names: names of the values of lists without labels; equal neighbors form one group.
        dense: names of the dense features of lists that name every value; None: none is dense.
        columns: the meaning of each column, as ``id``, ``hyp`` or the name of a feature.
        group_size: number of hypotheses of each sentence, for lists without ids.
        word_scores: what becomes of scores of single words, whose number varies.
    """

    names: tuple[str, ...] | None = None
    dense: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    group_size: int | None = None
    word_scores: Literal["drop", "sum"] = "drop"


class SentenceIds:
    """Numbers sentence ids that are texts by their order of first appearance, from 0.

    All files of a command share one object, so that an id has the same number in all of them.
    Formats whose ids are integers use those, and leave it empty.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}

    def number(self, name: str) -> int:
        """Return the number of an id; a new one is added."""
        return self._numbers.setdefault(name, len(self._numbers))

    @property
    def names(self) -> tuple[str, ...]:
        """The ids in the order of their numbers."""
        return tuple(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def spell(self, number: int) -> str:
        """Return the id with this number as messages show it."""
        names = self.names
        return quote(names[number]) if number < len(names) else str(number)


@dataclass(frozen=True)
class ListFormat:
    """A format of n-best lists.

    Attributes:
        name: its name on the command line, as ``jsonl``.
        summary: the form of a line, or what writes it; at most 60 characters.
        recognizes: returns whether the first lines of a file have this format: at least one, with
            their line ends, without empty ones. The last may be cut.
        read_blocks: yields a file as blocks of whole sentences in bounded memory. Sentence ids
            never decrease. Sparse features of each block are numbered independently.
        names_values: whether hypotheses may have different features, so that ``dense`` of the
            options must name the dense ones; all others are sparse.
        is_sized: whether its name is followed by the size of the groups, as ``flat:8``.
        may_be_sized: whether its name may be followed by such a size.
        read_whole: reads a file at once, with a number of threads; None: block by block.
        recognizes_directory: returns whether a directory has this format; None: no directory has.
        explain: returns how the first lines are understood, in words, or an empty text; None: there
            is nothing to choose.
    """

    name: str
    summary: str
    recognizes: Callable[[Sequence[bytes]], bool]
    read_blocks: Callable[[StrPath, ListOptions, SentenceIds], Iterator[NBestList]]
    names_values: bool = False
    is_sized: bool = False
    may_be_sized: bool = False
    read_whole: Callable[[StrPath, ListOptions, SentenceIds, int], NBestList] | None = None
    recognizes_directory: Callable[[Path], bool] | None = None
    explain: Callable[[Sequence[bytes], ListOptions], str] | None = None


_FIRST_BYTES = 1 << 16
_FIRST_LINES = 20


def read_first_lines(path: StrPath) -> list[bytes]:
    """Return the first lines of a file with their line ends, without empty ones.

    The last may be cut. What can be read once only has none: give a pipe as ``InputFile``, which
    also keeps the lines.

    Raises:
        FormatError: the file cannot be read.
    """
    if isinstance(path, InputFile) and path.first_lines is not None:
        return path.first_lines
    if is_read_once(path) or Path(path).is_dir():
        return []
    with open_text(path) as file:
        lines = file.read(_FIRST_BYTES).splitlines(keepends=True)
    lines = [line for line in lines[:_FIRST_LINES] if line.strip()]
    if isinstance(path, InputFile):
        path.first_lines = lines
    return lines


def sentence_order_error(
    ids: SentenceIds, number: int, before: int, path: StrPath, line: int
) -> FormatError:
    """Return the error for a sentence with a smaller number than the one before."""
    return FormatError(
        f"sentence {ids.spell(number)} comes after {ids.spell(before)}, but precedes it elsewhere",
        path=path,
        line=line,
        remedy="Put the hypotheses of a sentence together, and all files in one order of sentences",
    )
