"""The algorithms by name."""

from __future__ import annotations

__all__ = ["algorithms"]


def algorithms() -> dict[str, str]:
    """Return what each algorithm does, by the name that ``optimize`` takes.

    Example:
        >>> import mosesplug
        >>> mosesplug.algorithms()["mert"]
        "Find the metric's optimum along lines, exactly."
    """
    from mosesplug.optimizers import algorithms as registered

    return {name: each.summary for name, each in registered().items()}
