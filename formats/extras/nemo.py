"""Beams of NeMo: ``text<TAB>score``, ``nemo:N`` lines a sentence.

The scripts of ``scripts/asr_language_modeling/ngram_lm`` write such files (``preds_out_*.tsv``),
and ``eval_neural_rescorer.py`` reads them with ``beam_size`` lines for each utterance, in the order
of the manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formats.decimals import parse_number
from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds
from formats.nbest.readers.tables import read_groups
from formats.nbest.tables import split_line
from formats.text import StrPath


def _recognizes(lines: Sequence[bytes]) -> bool:
    whole = lines[:-1] or lines  # the last may be cut
    return all(_is_beam(split_line(line)) for line in whole)


def _is_beam(fields: Sequence[bytes]) -> bool:
    if len(fields) != 2 or b"|||" in fields[0]:
        return False
    score = parse_number(fields[1].strip(BLANKS))
    return score == score


def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    return read_groups(path, options.columns or ("hyp", "score"), options, "nemo")


NEMO = ListFormat(
    name="nemo",
    summary="nemo:N: N lines a sentence: text<TAB>score",
    recognizes=_recognizes,
    read_blocks=_read_blocks,
    is_sized=True,
)
