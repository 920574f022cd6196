"""Formulas of metrics: how scripts compute scores of summed statistics.

``scripts/metrics.js`` has the same formulas. A metric that is not listed here is shown without
scores: nothing may look like a score that is not the metric's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.metrics.bleu.gleu import Gleu
from mosesplug.metrics.chrf import Chrf
from mosesplug.metrics.edit.cer import Cer
from mosesplug.metrics.edit.mer import Mer
from mosesplug.metrics.edit.wer import Cder, Wer
from mosesplug.metrics.interpolated import InterpolatedMetric
from mosesplug.metrics.meteor import Meteor
from mosesplug.metrics.outside import OutsideMetric
from mosesplug.metrics.per import Per
from mosesplug.metrics.protocol import Metric
from mosesplug.metrics.ter.moses import Ter
from mosesplug.metrics.ter.sacrebleu import TerSacrebleu

Formula = Mapping[str, Any]


def find_formula(metric: Metric) -> Formula | None:
    """Return the formula of a metric's score; None if the scripts do not have it.

    Returns:
        ``kind``, a case of ``scoreTotals`` in ``metrics.js``; ``width``, the number of statistics;
        and the settings that change the score.
    """
    if isinstance(metric, InterpolatedMetric):
        return _find_sum(metric)
    if isinstance(metric, OutsideMetric) and metric.formula.metric is not None:
        return find_formula(metric.formula.metric)
    describe = _FORMULAS.get(type(metric))
    return None if describe is None else {"width": metric.n_statistics, **describe(metric)}


def _find_sum(metric: InterpolatedMetric) -> Formula | None:
    formulas = [find_formula(part) for part in metric.metrics]
    if None in formulas:
        return None
    whole = math.fsum(metric.weights)
    parts = [
        {"share": weight / whole, "formula": formula}
        for weight, formula in zip(metric.weights, formulas, strict=True)
    ]
    return {"kind": "sum", "width": metric.n_statistics, "parts": parts}


def _named(kind: str) -> Callable[[Any], Formula]:
    return lambda metric: {"kind": kind}


_FORMULAS: Mapping[type[Metric], Callable[[Any], Formula]] = MappingProxyType(
    {
        Bleu: _named("bleu"),
        Cder: _named("errors"),
        Cer: _named("errors"),
        Chrf: lambda metric: {"kind": "chrf", "beta": metric.beta, "smooth": metric.smooth},
        Gleu: _named("quotient"),
        Mer: _named("mer"),
        Meteor: lambda metric: {
            "kind": "meteor",
            **{name: getattr(metric, name) for name in ("alpha", "beta", "gamma", "exact", "stem")},
        },
        OutsideMetric: lambda metric: {
            "kind": "errors" if metric.is_error_rate else "quotient",
        },
        Per: _named("per"),
        Ter: _named("ter"),
        TerSacrebleu: _named("ter"),
        Wer: _named("errors"),
    }
)
