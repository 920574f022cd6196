"""Notes on lists whose texts and references are not what they seem."""

from __future__ import annotations

from collections.abc import Sequence

from mosesplug.store import NBestStore
from mosesplug.tuning.text_signs.comparison import choose_lines, find_text_signs
from mosesplug.tuning.text_signs.view import views_of_signatures


def note_text_signs(
    store: NBestStore, references: Sequence[Sequence[bytes]], signature: str
) -> tuple[str, ...]:
    """Return what to check about the first hypotheses and the references.

    Args:
        references: ``[reference][line]``, a line for each sentence of the store.
    """
    views = views_of_signatures([signature])
    if not views or not references:
        return ()
    texts: dict[int, bytes] = {}
    for sentence in choose_lines(store.n_sentences):
        # Each file may have lists of other sentences.
        hypotheses = store.hypotheses(sentence, 1) or store.hypotheses(sentence)
        if hypotheses:
            texts[sentence] = hypotheses[0]
    lines = [[each[sentence] for sentence in texts] for each in references]
    signs = find_text_signs(lines, [*texts.values()], views, rewriting="lists")
    return tuple(sign.message for sign in signs)
