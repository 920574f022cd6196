"""Metrics that count errors: scores are 1 minus the rate, people read the rate."""

from __future__ import annotations

from mosesplug.metrics.plugin import is_error_rate_plugin

_ERROR_RATES = frozenset({"CDER", "CER", "MER", "PER", "TER", "TER-SACREBLEU", "WER"})
"""Metrics whose scores are 1 minus the error rate, as in Moses' scorers."""

_RATE = "rate:yes"
"""The field in signatures of error rates that this package does not compute."""


def is_error_rate(metric: str) -> bool:
    """Return whether people read the metric as a rate of errors, where less is better.

    Args:
        metric: its signature, or the name of a metric of this package. A weighted sum is none.
    """
    name = metric.partition("|")[0]
    return "," not in name and _find_rates(metric) == {name}


def display_score(metric: str, score: float) -> float:
    """Return the score as people know it: for an error rate, the rate.

    Args:
        metric: as for ``is_error_rate``.
    """
    return 1.0 - score if is_error_rate(metric) else score


def label_metric(name: str, signature: str) -> str:
    """Return the label of computed scores: ``1 - WER`` for the error rate ``WER``."""
    return f"1 - {name}" if is_error_rate(signature) else name


def display_difference(metric: str, interval: tuple[float, float]) -> tuple[float, float]:
    """Return the interval of a difference as people know it: for rates, of rates.

    Args:
        metric: as for ``is_error_rate``.
    """
    low, high = interval
    return (0.0 - high, 0.0 - low) if is_error_rate(metric) else interval  # never -0.0


def explain_shown_scores(signature: str) -> str:
    """Return a signature; add how scores that ``display_score`` returns are read.

    Error rates are explained as rates; in weighted sums, as 1 minus the rate.
    """
    if is_error_rate(signature):
        return f"{signature} (an error rate: less is better)"
    names, rates = signature.partition("|")[0].split(","), _find_rates(signature)
    if not rates:
        return signature
    parts = " and ".join(f"1 - {name}" if name in rates else name for name in names)
    return f"{signature} (scores are a weighted sum of {parts}: larger is better)"


def _find_rates(signature: str) -> set[str]:
    """Return the names of the error rates in a signature."""
    first, *fields = signature.split("|")
    names, owner = first.split(","), first
    rates = {name for name in names if name in _ERROR_RATES or is_error_rate_plugin(name)}
    for field in fields:
        owner = field if field in names else owner
        if field.startswith("outside:"):  # its name may be that of another metric
            rates -= {owner}
        elif field == _RATE:
            rates |= {owner}
    return rates
