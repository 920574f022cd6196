"""``mosesplug weights show`` and ``diff``: what weights are, and how they differ."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.cli.shared.parameters import Json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mosesplug.inspection.weights.points import Point
    from mosesplug.inspection.weights.series import Series, Use

__all__ = ["WEIGHTS", "diff", "show"]

WEIGHTS = (
    "A file of any format, DENSE+SPARSE for two, the working directory of a run for its result, or"
    " DIRECTORY:N for what its iteration N was decoded with."
)

_Top = Annotated[int, typer.Option("--top", min=0, metavar="N", help="Show so many; 0 for all.")]

_BARS = 60
_CELL = 10
"""Width of a column of a drawn table."""


def show(
    weights: Annotated[str, typer.Argument(metavar="WEIGHTS", help=WEIGHTS)],
    top: Annotated[
        int, typer.Option(min=0, metavar="N", help="So many sparse features; 0 for all.")
    ] = 20,
    use: Annotated[
        bool,
        typer.Option(
            "--use/--no-use",
            help="Of a run: count the hypotheses in which sparse features are active, which reads "
            "all lists.",
        ),
    ] = True,
    json: Json = False,
) -> None:
    """The weights of a file, or of a run over its iterations.

    Of a file, share is the part that a dense weight has in the sum of their sizes. Of a run (the
    directory alone), weights are those that each iteration was decoded with, dense ones with an
    L1 norm of 1, and the result; bars go from the least to the greatest value of each row. Sparse
    features come twice: those of the largest weights, and those that are active (not 0) in the
    largest share of the distinct hypotheses.

    Example: mosesplug weights show tuning
    """
    from mosesplug.inspection.weights.points import has_store, read_point

    directory = Path(weights)
    if not directory.is_dir():
        _show_point(read_point(weights), top, json)
        return
    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.inspection.run import open_run
    from mosesplug.inspection.weights.series import of_files, of_run, sparse_use

    if not has_store(directory) and (found := of_files(directory)) is not None:
        _show_series(found, None, top, json)
        return
    used: Use | None = None
    with open_run(directory) as run:
        series = of_run(run, weights)
        if use and run.has_lists and run.space.n_sparse:
            with progress_bar(json) as progress:
                for used in sparse_use(run):
                    progress(used.sentences, run.n_sentences, "lists")
    _show_series(series, used, top, json)


def _show_point(point: Point, top: int, json: bool) -> None:
    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.inspection.weights.algebra import norm_of

    norm = norm_of(point)
    dense = dict(zip(point.names, point.weights.dense, strict=True))
    sparse = dict(sorted(point.weights.sparse.items(), key=lambda item: -abs(item[1])))
    if json:
        print_json(
            {
                "weights": point.source,
                "format": point.format,
                "l1_norm": norm,
                "dense": dense,
                "sparse": sparse,
                "not_tuned": dict(point.fixed),
            }
        )
        return
    print(
        f"{_seen(point.source)}: {point.format}, {len(dense)} dense weights of L1 norm {norm:.6g}, "
        f"{len(sparse)} sparse ones"
    )
    rows = [
        (_seen(name), _number(value), f"{100 * abs(value) / (norm or 1.0):.1f}%")
        for name, value in dense.items()
    ]
    rows += [(_seen(name), _number(value), "not tuned") for name, value in point.fixed.items()]
    if rows:
        print_table(("feature", "weight", "share"), rows, left=1)
    shown = list(sparse.items())[: top or None]
    if shown:
        print()
        print_table(
            ("sparse feature", "weight"), [(_seen(n), _number(v)) for n, v in shown], left=1
        )
        _more(len(sparse) - len(shown))


def _show_series(series: Series, used: Use | None, top: int, json: bool) -> None:
    from mosesplug.cli.shared.output import print_json

    sparse = {name: w for name, w in series.last.items() if name not in set(series.dense)}
    by_weight = sorted((n for n, w in sparse.items() if w), key=lambda n: -abs(sparse[n]))
    shares = {} if used is None else used.shares
    by_use = sorted(shares, key=lambda name: -shares[name])
    if json:
        print_json(
            {
                "run": series.source,
                "result_is": series.where,
                "iterations": [w and dict(w) for w in series.iterations],
                "result": None if series.result is None else dict(series.result),
                "active": None if used is None else shares,
                "distinct_hypotheses": None if used is None else used.hypotheses,
            }
        )
        return
    count = len(series.iterations)
    print(f"{_seen(series.source)}: weights of {count} iterations, and {series.where}")
    _series_table(series)
    if not (by_weight or by_use):
        return
    print(f"\nlargest of {len(by_weight)} sparse weights that are not 0")
    _sparse_table(series, sparse, shares, by_weight[: top or None])
    _more(len(by_weight) - len(by_weight[: top or None]))
    if used is not None:
        active = [name for name in by_use if shares[name] > 0.0]
        print(f"\nmost active of {len(active)} sparse features in {used.hypotheses} hypotheses")
        _sparse_table(series, sparse, shares, active[: top or None])
        _more(len(active) - len(active[: top or None]))


def _series_table(series: Series) -> None:
    """Dense weights over iterations; on a terminal as many of the newest as there is room for."""
    from mosesplug.cli.shared.output import is_terminal
    from mosesplug.cli.shared.tables import print_table

    numbers = [str(number) for number in range(1, len(series.iterations) + 1)]
    heads = numbers if series.result is None else [*numbers, "result"]
    room = len(heads)
    if is_terminal():
        longest = max(map(len, series.dense), default=0)
        left = shutil.get_terminal_size().columns - longest - max(10, min(len(heads), _BARS)) - 6
        room = min(max(left // _CELL, 2), len(heads))
    # The first is where it started.
    places = [0, *range(len(heads) - room + 1, len(heads))]
    rows = []
    for name in series.dense:
        values = series.of(name)
        rows.append((_seen(name), _bars(values), *(_cell(values[place]) for place in places)))
    print_table(("feature", "iterations", *(heads[place] for place in places)), rows, left=2)


def _sparse_table(
    series: Series, sparse: Mapping[str, float], shares: Mapping[str, float], names: list[str]
) -> None:
    from mosesplug.cli.shared.tables import print_table

    head = ("sparse feature", "iterations", "weight", *(["active"] if shares else []))
    rows = []
    for name in names:
        row = (_seen(name), _bars(series.of(name)), _number(sparse.get(name, 0.0)))
        rows.append((*row, f"{100 * shares.get(name, 0.0):.2f}%") if shares else row)
    if rows:
        print_table(head, rows, left=2)


def diff(
    first: Annotated[str, typer.Argument(metavar="A", help=WEIGHTS)],
    second: Annotated[str, typer.Argument(metavar="B", help="Others, likewise.")],
    normalise: Annotated[
        bool,
        typer.Option(
            "--normalise/--no-normalise",
            help="Divide both by the L1 norm of their dense weights first.",
        ),
    ] = False,
    top: _Top = 50,
    json: Json = False,
) -> None:
    """What differs between two sets of weights, the largest difference first.

    Numbers are those of the files unless --normalise is given: weights that differ by one factor
    decide alike, and have a cosine of 1. Change is the difference over the size of A's weight.
    A feature that only one of them has is marked. Numbers without names (weights.txt, init.opt) are
    compared with named ones by their place, which is the decoder's order.

    Example: mosesplug weights diff tuning:1 tuning
    """
    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.inspection.weights.algebra import cosine, differences, norm_of, normalised
    from mosesplug.inspection.weights.points import read_point

    a, b = read_point(first), read_point(second)
    kept = [name for name in a.fixed if b.fixed.get(name, a.fixed[name]) != a.fixed[name]]
    norms = norm_of(a), norm_of(b)
    if normalise:
        a, b = normalised(a), normalised(b)
    rows = differences(a, b)
    angle = cosine(rows)
    if json:
        print_json(
            {
                "a": a.source,
                "b": b.source,
                "l1_norms": norms,
                "normalised": normalise,
                "cosine": angle,
                "features": [
                    {
                        "feature": row.name,
                        "a": row.first,
                        "b": row.second,
                        "difference": row.change,
                        "change": row.relative,
                    }
                    for row in rows
                ],
                "not_tuned": [
                    {"feature": name, "a": a.fixed[name], "b": b.fixed[name]} for name in kept
                ],
            }
        )
        return
    print(f"A: {_seen(a.source)}, {a.format}, L1 norm {norms[0]:.6g}")
    print(f"B: {_seen(b.source)}, {b.format}, L1 norm {norms[1]:.6g}")
    print(f"cosine {'of no direction' if angle is None else f'{angle:.6f}'}")
    if not normalise and min(norms) > 0.0 and abs(norms[1] / norms[0] - 1.0) > 0.01:
        print("the norms differ: --normalise takes that out of the differences")
    changed = [row for row in rows if row.change != 0.0 or None in (row.first, row.second)]
    shown = changed[: top or None]
    if shown:
        print()
        print_table(
            ("feature", "A", "B", "difference", "change"),
            [
                (
                    _seen(row.name),
                    "-" if row.first is None else _number(row.first),
                    "-" if row.second is None else _number(row.second),
                    f"{row.change:+.6g}",
                    _change(row.first, row.second, row.relative),
                )
                for row in shown
            ],
            left=1,
        )
        _more(len(changed) - len(shown))
    print(f"\n{len(rows) - len(changed)} of {len(rows)} features have equal weights")
    for name in kept:
        print(f"not tuned, and different: {_seen(name)} {a.fixed[name]:g} {b.fixed[name]:g}")


def _change(first: float | None, second: float | None, relative: float | None) -> str:
    if first is None or second is None:
        return "only in B" if first is None else "only in A"
    return "" if relative is None else f"{100 * relative:+.1f}%"


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _bars(values: tuple[float | None, ...]) -> str:
    """Bars of a readable number; of a longer run, evenly chosen ones."""
    from mosesplug.inspection.weights.series import spark

    n = len(values)
    if n > _BARS:
        values = tuple(values[round(k * (n - 1) / (_BARS - 1))] for k in range(_BARS))
    return spark(values, sys.stdout.encoding or "ascii")


def _number(value: float) -> str:
    return f"{value:.6g}"


def _more(count: int) -> None:
    if count > 0:
        print(f"({count} more: --top 0 shows all)")


def _seen(name: str) -> str:
    from mosesplug.inspection.texts import mark_invalid_utf8

    return mark_invalid_utf8(name)
