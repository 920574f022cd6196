"""References of lists whose sentence ids are texts, as of utterances.

Line ``k`` of the references belongs to the ``k``-th id in order of first appearance. If the lines
begin with the ids themselves, as in Kaldi's ``text`` files (``id text``) or as JSON objects
(``{"id": ..., "text": ...}``), they may stand in any order, and there may be more of them. JSON
objects without ids, as in NeMo's manifests, stand for their texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from formats.errors import FormatError, quote
from formats.nbest.block import NBestList
from formats.nbest.list_format import ID_NAMES, SentenceIds, open_blocks
from formats.text import StrPath
from mosesplug.errors import DataError
from mosesplug.learning.lists.blocks import make_list_options, names_values, scan_lists
from mosesplug.settings.lists import ListSettings

__all__ = [
    "REFERENCE_KEYS",
    "MatchedReferences",
    "arrange_lines",
    "check_reference_count",
    "match_references",
    "split_id",
]

REFERENCE_KEYS = ("text", "ref", "reference")
"""Keys of the text in JSON objects."""

_FEWEST_IDS = 5
"""Fewer lines do not show that their first words are ids."""

_Lines = Sequence[Sequence[bytes]]


class MatchedReferences(NamedTuple):
    """References, ``[reference][line]``, and the known ids of their lines."""

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
        The references in the order of the ids, and the numbers of the ids. For lists whose ids are
        integers, and references without ids, they have the order of the lines.

    Raises:
        FormatError: a list does not have its format.
        DataError: an id has no reference, or two; or references begin with other ids.
    """
    first = _read_first_ids(files, settings) if lines else set[str]()
    keys = [_read_keys(each) for each in lines]
    if not first or not all(_are_ids(each, first) for each in keys):
        for own in keys if first else []:
            _check_other_ids(own, first, what)
        return MatchedReferences(_take_objects(lines), SentenceIds())
    ids = _order_ids([file for file in files if not isinstance(file, NBestList)], settings, keys[0])
    return MatchedReferences(arrange_lines(lines, ids, what), SentenceIds(ids))


def arrange_lines(lines: _Lines, ids: Sequence[str], what: str) -> _Lines:
    """Return references in the order of ids; those without ids stay as they are.

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
    """Return the ids of the first block.

    The set is empty if ids are integers, or if the list can be read only once.
    """
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
    return [split_id(line)[0].decode("utf-8", "surrogateescape") for line in lines]


def split_id(line: bytes, keys: Sequence[str] = REFERENCE_KEYS) -> tuple[bytes, bytes]:
    """Return the id and the text of a line.

    Args:
        line: ``id text``, or a JSON object. Of one without an id, the id is empty; of one without
            a text, the text is the line, the same object.
        keys: the keys of the text in a JSON object, the first that it has.
    """
    if line.startswith(b"{"):
        found = _parse_object(line)
        name = next((str(found[key]) for key in ID_NAMES if key in found), "")
        text = _find_text(found, keys)
        return (name.encode("utf-8", "surrogatepass"), text) if text is not None else (b"", line)
    key, _, text = line.partition(b"\t") if b"\t" in line else line.partition(b" ")
    return key, text.strip()


def _are_ids(keys: Sequence[str], ids: set[str]) -> bool:
    """Return whether most ids are keys, or most keys ids.

    If so, one that is missing is an error.
    """
    return 2 * len(ids.intersection(keys)) > min(len(ids), len(keys))


def _check_other_ids(keys: Sequence[str], ids: set[str], what: str) -> None:
    """Check that references do not begin with ids of other lists.

    Such ids would count as words.

    Raises:
        DataError: they do: all first words differ, and each has digits and something else.
    """
    if len(keys) < _FEWEST_IDS or len({*keys}) < len(keys) or not all(map(_is_like_id, keys)):
        return
    raise DataError(
        f"{what}:1: the line begins with {quote(keys[0])}, which looks like an id, but the lists "
        f"have other ids, as {quote(min(ids))}. Give the references of these lists, or lines "
        "without ids in the order of the lists"
    )


def _is_like_id(key: str) -> bool:
    return any(map(str.isdigit, key)) and not key.isdigit()


def _take_objects(lines: _Lines) -> _Lines:
    """Return the texts of JSON objects if all lines are such objects; else the lines."""
    if not lines or not all(each and each[0].startswith(b"{") for each in lines):
        return lines
    texts: list[list[bytes]] = []
    for each in lines:
        found = [_find_text(_parse_object(line)) for line in each]
        texts.append([text for text in found if text is not None])
    is_complete = all(len(own) == len(each) for own, each in zip(texts, lines, strict=True))
    return texts if is_complete else lines


def _parse_object(line: bytes) -> Mapping[str, Any]:
    """Return a JSON object, which is empty if the line has another value."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _find_text(found: Mapping[str, Any], keys: Sequence[str] = REFERENCE_KEYS) -> bytes | None:
    """Return the text of a JSON object, None if it has none."""
    texts = (found[key] for key in keys if isinstance(found.get(key), str))
    return next((text.encode("utf-8", "surrogatepass") for text in texts), None)


def _take_texts(lines: Sequence[bytes], keys: Sequence[str], what: str) -> dict[str, bytes]:
    texts: dict[str, bytes] = {}
    for number, (key, line) in enumerate(zip(keys, lines, strict=True), start=1):
        if key in texts:
            raise DataError(f"{what}:{number}: the id {quote(key)} has two references. Remove one")
        texts[key] = split_id(line)[1]
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
