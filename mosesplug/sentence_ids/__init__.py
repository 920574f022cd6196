"""Whether lines begin with sentence ids, and the lines in the order of ids.

``begins_with_ids`` is the only place that decides it: for references, translations and source
sentences, from files, pipes and objects, beside n-best lists or beside each other.
"""

from __future__ import annotations

from mosesplug.sentence_ids.arranging import arrange_lines, arrange_texts
from mosesplug.sentence_ids.decision import ListedIds, begins_with_ids
from mosesplug.sentence_ids.lines import REFERENCE_KEYS, TRANSLATION_KEYS, TextLines

__all__ = [
    "REFERENCE_KEYS",
    "TRANSLATION_KEYS",
    "ListedIds",
    "TextLines",
    "arrange_lines",
    "arrange_texts",
    "begins_with_ids",
]
