"""How scores are signed for people: what was measured, and what a larger number means."""

from __future__ import annotations

__all__ = ["explained"]

_ERROR_RATES = frozenset({"CDER", "PER", "TER", "TER-SACREBLEU", "WER"})
"""Metrics whose scores are 1 less the rate, as Moses' scorers have them."""


def explained(signature: str) -> str:
    """A metric's signature; where errors are counted, it says which number the score is."""
    names = signature.partition("|")[0].split(",")
    if not _ERROR_RATES.intersection(names):
        return signature
    parts = [f"1 - {name}" if name in _ERROR_RATES else name for name in names]
    said = parts[0] if len(parts) == 1 else f"a weighted sum of {' and '.join(parts)}"
    return f"{signature} (scores are {said}: larger is better)"
