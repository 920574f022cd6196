"""References in the order of the sentences of lists.

Line ``k`` of the references belongs to sentence ``k``: of sentence ids that are texts, as of
utterances, to the ``k``-th one in order of first appearance. If the lines begin with the ids
themselves, they may stand in any order, and there may be more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from formats.nbest.registry import open_blocks
from formats.text import StrPath
from mosesplug.errors import DataError
from mosesplug.learning.lists.blocks import make_list_options, scan_lists
from mosesplug.sentence_ids import ListedIds, TextLines, arrange_texts, begins_with_ids
from mosesplug.settings.lists import ListSettings

_Lines = Sequence[Sequence[bytes]]


class MatchedReferences(NamedTuple):
    """References, ``[reference][line]``, and the known ids of their lines."""

    lines: _Lines
    ids: SentenceIds


def match_references(
    files: Sequence[StrPath | NBestList], settings: ListSettings, lines: _Lines, what: str
) -> MatchedReferences:
    """Arrange references by the sentence ids of lists; ``begins_with_ids`` decides.

    Args:
        settings: how they are read, and whether references begin with ids.
        lines: the references, ``[reference][line]``.

    Returns:
        The references in the order of the ids, and the numbers of the ids. For lists whose ids are
        integers, and references without ids, they have the order of the lines.

    Raises:
        DataError: an id has no reference, or two; or it cannot be decided whether references begin
            with ids; or lists in memory have different ids; or there are source sentences, which
            have no ids, and references in another order than the lists.
    """
    held = _find_held_ids(files)
    if not lines:
        return MatchedReferences(lines, SentenceIds(held))
    texts = [TextLines.of_lines(what, text_lines) for text_lines in lines]
    first, own = files[0], SentenceIds()
    if not isinstance(first, NBestList):
        first = next(open_blocks(first, settings.format, make_list_options(settings), own))
    listed = ListedIds(frozenset(held or own.names), partial(map, first.text, range(len(first))))
    begins = begins_with_ids(texts, settings.ids, listed)
    ids = held
    if begins and listed.names:
        ids = held or _order_ids(files, settings, texts[0].ids)
        if settings.source is not None and ids != tuple(texts[0].ids):
            raise DataError(
                f"{what}: the sentences have another order than in the lists, so that the lines of "
                f"{settings.source} may belong to others. Give references and {{--source}} one "
                "line for each sentence in the order of the lists"
            )
    return MatchedReferences(arrange_texts(texts, ids, begins), SentenceIds(ids))


def check_reference_count(ids: SentenceIds, lines: _Lines, what: str) -> None:
    """Check that there is one reference for each id, where line numbers match them."""
    if len(ids) and lines and len(ids) != len(lines[0]):
        raise DataError(
            f"{what}: {len(lines[0])} references for {len(ids)} sentence ids. Give one line for "
            "each id in the order of the lists, or begin each line with its id"
        )


def _find_held_ids(files: Sequence[StrPath | NBestList]) -> tuple[str, ...]:
    """Return the sentence ids of lists in memory, which number them alike."""
    held = {file.ids if isinstance(file, NBestList) else () for file in files}
    if len(held) > 1:
        raise DataError(
            "the lists have different sentence ids: give their files, which are read together"
        )
    return next(iter(held), ())


def _order_ids(
    files: Sequence[StrPath | NBestList], settings: ListSettings, keys: Sequence[str]
) -> tuple[str, ...]:
    """Return the ids of all lists.

    They have the order of the references if the lists have it, too: then a list may lack sentences
    of another one. Else it is that of the first appearance.
    """
    paths = [file for file in files if not isinstance(file, NBestList)]
    try:
        scan = scan_lists(paths, settings, SentenceIds(keys))
    except FormatError:  # also one that the next scan raises again
        scan = scan_lists(paths, settings)
    return tuple(scan.ids[number] for number in scan.sentences)
