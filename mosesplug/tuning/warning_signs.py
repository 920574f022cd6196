"""Signs that a tuning run goes wrong although nothing failed.

The functions are pure. Each sign has a name and a message with observation and remedy. They come
from public reports: weights of 1 and 1e-39 (a component that nothing depends on takes all of the
norm), or zeros with a score of 0 (lists of empty hypotheses), which other tools write into
``moses.ini`` without a warning. The thresholds are far from the values of sound systems.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import Message
from mosesplug.metrics.error_rates import display_score, is_error_rate
from mosesplug.tuning_set import TuningSet

NOTHING = 1e-30
"""Smaller weights count as 0: decoders compute in float32, where their products vanish."""

_SLOWER = (
    ("rate", "a lower learning rate"),
    ("step_cap", "smaller steps"),
    ("step", "smaller steps"),
    ("l2", "a larger penalty"),
    ("regularization", "more regularization"),
    ("prior_precision", "more regularization"),
    ("slack", "smaller steps"),
)
"""Options that keep weights near the ones before, and what to do with them."""

ALMOST_ALL = 0.999
"""Share of the L1 norm that no single weight of a sound system has."""


@dataclass(frozen=True)
class WarningSign:
    """A sign that something is wrong.

    Attributes:
        message: a ``Message`` with observation and remedy, on one line.
        is_fatal: whether the weights cannot be used at all.
    """

    name: str
    message: str
    is_fatal: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", Message(self.message))


def find_weight_signs(
    weights: NDArray[np.float64], names: Sequence[str], n_dense: int | None = None
) -> list[WarningSign]:
    """Find weights that cannot be a result.

    Args:
        n_dense: how many of them, the first, are dense; None for all.
    """
    finite = np.isfinite(weights)
    if not finite.all():
        name = names[int(np.flatnonzero(~finite)[0])]
        return [
            WarningSign("not finite", f"the weight of {name} is not a finite number", is_fatal=True)
        ]
    sizes = np.abs(weights)
    if not len(sizes) or sizes[:n_dense].max(initial=0.0) < NOTHING:
        return [WarningSign("no weights", "all dense weights are zero or nearly zero", True)]
    largest = int(sizes.argmax())
    if len(sizes) > 1 and sizes[largest] > ALMOST_ALL * sizes.sum():
        return [
            WarningSign(
                "one weight",
                f"the weight of {names[largest]} is more than {ALMOST_ALL:.1%} of all: other"
                " features hardly count. See whether that feature varies in the lists, or tune"
                " again with other starting weights",
            )
        ]
    return []


def find_score_signs(
    scores: Sequence[float], signature: str, max_drop: float, options: Collection[str] = ()
) -> list[WarningSign]:
    """Find scores of the decoder's 1-best that are 0, or have become worse.

    Args:
        scores: the scores of all iterations so far, larger is better.
        signature: that of the metric; messages show scores of error rates as rates.
        options: names of the options of the algorithm, of which one may slow it.
    """
    signs = []
    is_rate = is_error_rate(signature)
    what, worse = ("error rate", "above") if is_rate else ("score", "below")
    shown = [display_score(signature, score) for score in scores]
    slower = next(
        (f"{how} ({{--option}} {name}=X), " for name, how in _SLOWER if name in options), ""
    )
    if scores and scores[0] == 0:
        signs.append(
            WarningSign(
                "no score",
                f"the {what} of the first translations is {shown[0]:g}: they share almost no"
                " words with the references. Check that the decoder translates, and that the"
                " references are translations of the input",
            )
        )
    if len(scores) > 1 and scores[0] - scores[-1] > max_drop:
        signs.append(
            WarningSign(
                "worse",
                f"iteration {len(scores)} scores {shown[-1]:.4f}, which is more than {max_drop:g}"
                f" {worse} the {shown[0]:.4f} of the first. The weights have become worse:"
                f" {slower}longer lists or another algorithm may help",
            )
        )
    return signs


def find_list_signs(*parts: TuningSet) -> list[WarningSign]:
    """Find n-best lists from which little or nothing can be learned.

    Args:
        parts: distinct hypotheses of each sentence; with shards, one part per shard.
    """
    widths = np.concatenate([np.zeros(0, np.int64), *(np.diff(part.offsets) for part in parts)])
    widths = widths[widths > 0]
    if not len(widths):
        return []
    signs = []
    single = int((widths == 1).sum())
    if 2 * single >= len(widths):
        signs.append(
            WarningSign(
                "no diversity",
                f"{single} of {len(widths)} sentences have one distinct hypothesis, from which"
                " nothing can be learned. Ask for longer lists, and see whether the decoder has"
                " more than one translation for a phrase",
            )
        )
    every = zip(*map(_find_varying, parts), strict=True)
    names = [
        name for name, varies in zip(parts[0].space.labels, every, strict=False) if not any(varies)
    ]
    if names and single < len(widths):
        several = len(names) > 1
        signs.append(
            WarningSign(
                "constant feature",
                f"{', '.join(names)} {'have' if several else 'has'} the same value in all"
                " hypotheses of each sentence and cannot be tuned. Remove the"
                f" {'features' if several else 'feature'}, or set tuneable=false in moses.ini",
            )
        )
    return signs


def _find_varying(lists: TuningSet) -> Iterator[bool]:
    """Yield whether each dense feature has two values in any sentence."""
    inner = np.ones(max(lists.n_hyps - 1, 0), dtype=np.bool_)
    bounds = lists.offsets[1:-1]
    inner[bounds[(bounds > 0) & (bounds < lists.n_hyps)] - 1] = False
    for column in lists.dense.T:
        yield bool((np.diff(column) != 0)[inner].any())
