"""Find scores from outside of stored hypotheses by their sentence and text.

The lists of a store have no lines, and the order in which they are exported depends on weights that
may change. Each line of a file of scores therefore names its hypothesis.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError, quote
from formats.scores import read_score_blocks
from mosesplug.errors import DataError, UsageError
from mosesplug.settings.scores import ScoreSource


def find_scores(
    sources: Sequence[ScoreSource],
    owners: NDArray[np.int64],
    texts: Sequence[bytes],
    ids: Sequence[str] = (),
) -> NDArray[np.float64]:
    """Return the scores of stored hypotheses by sentence and text, float64 ``[n, k]``.

    Lines may come in any order, and there may be more of them.

    Args:
        sources: files of ``ID ||| TEXT ||| NUMBERS`` lines.
        owners: int64 ``[n]``, the sentence of each hypothesis.
        ids: sentence ids that are texts, by their numbers; empty if ids are numbers.

    Raises:
        FormatError: a file cannot be read or names no texts, or has two scores of one text.
    """
    columns = []
    for source in sources:
        known = _read_by_text(source, ids)
        keys = zip(owners.tolist(), texts, strict=True)
        rows = [known.get((number, text.strip())) for number, text in keys]
        if None in rows:
            place = rows.index(None)
            sentence = quote(ids[owners[place]]) if ids else owners[place]
            raise DataError(
                f"{source.place} has no score of {quote(texts[place])}, a hypothesis of sentence "
                f"{sentence}: score all lists that mosesplug nbest export writes"
            )
        columns.append(np.array([row for row in rows if row is not None], dtype=np.float64))
    return np.concatenate(columns, axis=1)


def _explain_ids(ids: Sequence[str]) -> str:
    shown = f"Its ids are {', '.join(map(quote, ids[:3]))}, ..." if ids else ""
    return shown or "Count the sentences from 0"


def _read_by_text(
    source: ScoreSource, ids: Sequence[str]
) -> dict[tuple[int, bytes], tuple[float, ...]]:
    """Return the scores of a source by sentence and text."""
    if source.values is not None:
        raise UsageError(
            f"{source.place}: the lists of a store have no order to follow; give a file with lines "
            "'ID ||| TEXT ||| NUMBERS'"
        )
    known: dict[tuple[int, bytes], tuple[float, ...]] = {}
    numbers = {name.encode("utf-8", "surrogateescape"): n for n, name in enumerate(ids)}
    for rows in (rows for path in source.paths for rows in read_score_blocks(path)):
        if rows.ids is None or rows.texts is None:
            raise FormatError(
                "the scores of stored lists need sentence ids and texts",
                path=rows.path,
                line=rows.first,
                remedy="Write each line as 'ID ||| TEXT ||| NUMBERS', in any order",
            )
        for place, values in enumerate(map(tuple, rows.values.tolist())):
            spelled = rows.ids[place]
            number = numbers.get(spelled, int(spelled) if spelled.isdigit() else None)
            if number is None:
                raise FormatError(
                    f"{quote(spelled)} is not a sentence id of a store",
                    path=rows.path,
                    line=rows.first + place,
                    remedy=_explain_ids(ids),
                )
            key = number, rows.texts[place]
            if known.setdefault(key, values) != values:
                raise FormatError(
                    f"another score of {quote(key[1])} in sentence {key[0]} than before",
                    path=rows.path,
                    line=rows.first + place,
                    remedy="Give each text one score",
                )
    return known
