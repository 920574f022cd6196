"""The scores of compared systems as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mosesplug.evaluation.comparison import SystemScore

__all__ = ["tabulate_systems"]

_HEAD = ("metric", "system", "runs", "score", "95 % interval", "s_sel", "s_opt")
_COMPARED = ("difference", "p(AR)", "p(boot)", "wins")


def tabulate_systems(scores: Sequence[SystemScore]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows, without columns that are empty for all systems.

    The first two columns hold text.
    """
    several_runs = any(score.runs > 1 for score in scores)
    rows = [_list_cells(score, several_runs) for score in scores]
    kept = [place for place, column in enumerate(zip(*rows, strict=True)) if any(column)]
    head = [(*_HEAD, *_COMPARED)[place] for place in kept]
    return head, [[row[place] for place in kept] for row in rows]


def _list_cells(score: SystemScore, several_runs: bool) -> list[str]:
    return [
        score.metric,
        score.system,
        str(score.runs) if several_runs else "",
        _format(score.score),
        "{:.4f} to {:.4f}".format(*score.interval),
        _format(score.s_sel),
        "" if math.isnan(score.s_opt) else _format(score.s_opt),
        "" if score.difference is None else f"{score.difference:+.4f}",
        _format(score.p_randomisation),
        _format(score.p_bootstrap),
        "" if score.wins is None else f"{100 * score.wins:.1f}%",
    ]


def _format(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
