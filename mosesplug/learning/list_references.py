"""References of lists whose sentence ids are texts, as of utterances.

Line ``k`` of the references belongs to the ``k``-th id in order of first appearance. If the lines
begin with the ids themselves, as in Kaldi's ``text`` files (``id text``) or as JSON objects
(``{"id": ..., "text": ...}``), they may stand in any order, and there may be more of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from formats.errors import FormatError, quote
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds, open_blocks
from formats.text import StrPath
from mosesplug.errors import DataError
from mosesplug.learning.list_blocks import make_list_options, names_values, scan_lists
from mosesplug.settings.lists import ListSettings

__all__ = ["MatchedReferences", "arrange_lines", "check_reference_count", "match_references"]

_TEXT_KEYS = ("text", "ref", "reference")

_Lines = Sequence[Sequence[bytes]]


class MatchedReferences(NamedTuple):
    """References, ``[reference][line]``, and the ids that their lines are of, as far as known."""

    lines: _Lines
    ids: SentenceIds


def match_references(
    files: Sequence[StrPath | NBestList], settings: ListSettings, lines: _Lines, what: str
) -> MatchedReferences:
    """Arrange references by the sentence ids of lists.

    Args:
        files: the lists.
        settings: how they are read.
        lines: the references, ``[reference][line]``.
        what: how messages call the references.

    Returns:
        The references in the order of the ids, and the numbers of the ids. Lists whose ids are
        integers, and references without ids, are left as they are.

    Raises:
        FormatError: a list does not have its format.
        DataError: an id has no reference, or two.
    """
    first = _read_first_ids(files, settings) if lines else set[str]()
    keys = [_read_keys(each) for each in lines]
    if not first or not all(_are_ids(each, first) for each in keys):
        return MatchedReferences(lines, SentenceIds())
    ids = _order_ids([file for file in files if not isinstance(file, NBestList)], settings, keys[0])
    return MatchedReferences(arrange_lines(lines, ids, what), SentenceIds(ids))


def arrange_lines(lines: _Lines, ids: Sequence[str], what: str) -> _Lines:
    """Return references in the order of ids; those that do not begin with ids are left as they are.

    Raises:
        DataError: an id has no reference, or two.
    """
    keys = [_read_keys(each) for each in lines]
    if not all(_are_ids(each, set(ids)) for each in keys):
        return lines
    texts = [_take_texts(each, own, what) for each, own in zip(lines, keys, strict=True)]
    for known in texts:
        if missing := next((name for name in ids if name not in known), None):
            raise DataError(
                f"{what}: the sentence id {quote(missing)} of the lists has no reference. Add a "
                "line that begins with it"
            )
    return [[known[name] for name in ids] for known in texts]


def check_reference_count(ids: SentenceIds, lines: _Lines, what: str) -> None:
    """Check that there is one reference for each id, where line numbers match them.

    Raises:
        DataError: there are more.
    """
    if len(ids) and lines and len(ids) != len(lines[0]):
        raise DataError(
            f"{what}: {len(lines[0])} references for {len(ids)} sentence ids. Give one line for "
            "each id in the order of the lists, or begin each line with its id"
        )


def _read_first_ids(files: Sequence[StrPath | NBestList], settings: ListSettings) -> set[str]:
    """Return ids of the first block; none if ids are integers or the list can be read once only."""
    path = next(iter(files), None)
    if path is None or isinstance(path, NBestList):
        return set()
    if not (Path(path).is_file() or Path(path).is_dir()):
        return set()
    ids = SentenceIds()
    options = make_list_options(settings, () if names_values(path, settings) else None)
    next(open_blocks(path, settings.format, options, ids), None)
    return set(ids.names)


def _read_keys(lines: Sequence[bytes]) -> list[str]:
    """Return what would be the ids of references."""
    return [_split_line(line)[0].decode("utf-8", "surrogateescape") for line in lines]


def _split_line(line: bytes) -> tuple[bytes, bytes]:
    """Return the id and the text of a line."""
    if line.startswith(b"{"):
        try:
            found = json.loads(line)
        except ValueError:
            return b"", line
        text = next((found[key] for key in _TEXT_KEYS if isinstance(found.get(key), str)), None)
        if "id" not in found or text is None:
            return b"", line
        return str(found["id"]).encode(), text.encode()
    key, _, text = line.partition(b"\t") if b"\t" in line else line.partition(b" ")
    return key, text.strip()


def _are_ids(keys: Sequence[str], ids: set[str]) -> bool:
    """Return whether most ids are among the keys: one that is missing is an error then."""
    return 2 * len(ids.intersection(keys)) > len(ids)


def _take_texts(lines: Sequence[bytes], keys: Sequence[str], what: str) -> dict[str, bytes]:
    texts: dict[str, bytes] = {}
    for number, (key, line) in enumerate(zip(keys, lines, strict=True), start=1):
        if key in texts:
            raise DataError(f"{what}:{number}: the id {quote(key)} has two references. Remove one")
        texts[key] = _split_line(line)[1]
    return texts


def _order_ids(
    files: Sequence[StrPath], settings: ListSettings, keys: Sequence[str]
) -> tuple[str, ...]:
    """Return the ids of all lists.

    They have the order of the references if the lists have it, too: then a list may lack sentences
    of another one. Else it is that of the first appearance.
    """
    try:
        scan = scan_lists(files, settings, SentenceIds(keys))
    except FormatError:  # also one that the next scan raises again
        scan = scan_lists(files, settings)
    return tuple(scan.ids[number] for number in scan.sentences)
