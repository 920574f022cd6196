"""Metrics that count errors: scores are 1 minus the rate, people read the rate."""

from __future__ import annotations

from mosesplug.metrics.plugin import is_error_rate_plugin

__all__ = ["display_score", "explain_signature", "is_error_rate"]

_ERROR_RATES = frozenset({"CDER", "CER", "MER", "PER", "TER", "TER-SACREBLEU", "WER"})
"""Metrics whose scores are 1 minus the error rate, as in Moses' scorers."""


def is_error_rate(metric: str) -> bool:
    """Return whether people read the metric as a rate of errors, where less is better."""
    return metric in _ERROR_RATES or is_error_rate_plugin(metric)


def display_score(metric: str, score: float) -> float:
    """Return the score as people know it: for an error rate, the rate."""
    return 1.0 - score if is_error_rate(metric) else score


def explain_signature(signature: str) -> str:
    """Return a metric's signature; for error rates, add that scores are 1 minus the rate."""
    names = signature.partition("|")[0].split(",")
    if not any(map(is_error_rate, names)):
        return signature
    parts = [f"1 - {name}" if is_error_rate(name) else name for name in names]
    what = parts[0] if len(parts) == 1 else f"a weighted sum of {' and '.join(parts)}"
    return f"{signature} (scores are {what}: larger is better)"
