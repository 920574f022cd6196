"""``mosesplug weights show`` and ``diff``: print weights and their differences."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from mosesplug.cli.inspect.weight_options import WeightsDiffCommand, WeightsShowCommand
from mosesplug.cli.shared.layouts import output_stream
from mosesplug.cli.shared.output import is_terminal, print_json, progress_bar
from mosesplug.cli.shared.parameters import THREADS
from mosesplug.cli.shared.tables import print_blocks, print_table
from mosesplug.errors import Message, UsageError, count_noun
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.results.render.record import tabulate
from mosesplug.results.render.tables import format_sparkline
from mosesplug.results.views.run import open_run
from mosesplug.results.weights import algebra
from mosesplug.results.weights.convert import spell_list_changes
from mosesplug.results.weights.history import (
    SparseUse,
    WeightHistory,
    count_sparse_use,
    read_file_history,
    read_run_history,
)
from mosesplug.results.weights.sources import find_mean_file, has_store, resolve_weights
from mosesplug.settings.paths import split_iteration
from mosesplug.tuning.workdir.stores import find_run

_BARS = 60
_CELL = 10
"""Width of a column of a drawn table."""


def show(options: WeightsShowCommand) -> None:
    """Show the weights of a file or of a run's iterations."""
    name = options.weights
    if options.importance:
        _show_importance(options)
        return
    directory = Path(name)
    if not directory.is_dir() or find_mean_file(directory) is not None:
        _show_weights(options)
        return
    run_directory = find_run(directory)
    if run_directory != directory:
        directory, name = run_directory, str(run_directory)
    if not has_store(directory) and (history := read_file_history(directory)) is not None:
        _show_history(history, None, options)
        return
    sparse_use: SparseUse | None = None
    with open_run(directory) as run:
        history = read_run_history(run, name)
        if options.use and run.has_lists and run.space.n_sparse:
            with progress_bar(options.json) as progress:
                for sparse_use in count_sparse_use(run):
                    progress(sparse_use.sentences, run.n_sentences, "lists")
    _show_history(history, sparse_use, options)


def _show_importance(options: WeightsShowCommand) -> None:
    # Imported here, since it loads the optimizers, which showing weights does not need.
    from mosesplug.results.views.importance import FeatureImportance, measure_importance

    name, top = options.weights, options.top
    directory, iteration = split_iteration(name) or (Path(name), None)
    if not directory.is_dir():
        raise UsageError(
            f"--importance measures how features vary in lists: give a run or a store, not {name}"
        )
    with open_run(directory, with_lists=True) as run, progress_bar(options.json) as progress:
        weights = None if iteration is None else run.decoding_weights(iteration)
        steps = measure_importance(run, weights, top=top or run.space.n_sparse, threads=THREADS)
        for done, importance in enumerate(steps):
            progress(done, len(importance.features), "features")
        origin = f"those of iteration {iteration}" if iteration else run.weights_origin
    if options.json:
        print_json({"weights": name, "weights_are": origin, **asdict(importance)})
        return
    print(
        f"{importance.metric} of the merged lists: {importance.score:.4f} at the weights "
        f"({origin}), {importance.learned_score:.4f} with dense weights learned again (mert)"
    )
    print_blocks([tabulate(FeatureImportance, importance.features)])
    if importance.untried:
        print(f"({importance.untried} more sparse features: --top 0 shows all)")
    print(
        f"loss: {importance.metric} that is lost without the feature, with the weights of the "
        "others kept, and with those of the dense ones learned again"
    )


def _show_weights(options: WeightsShowCommand) -> None:
    weights = resolve_weights(options.weights)
    norm = algebra.compute_norm(weights)
    dense = dict(zip(weights.names, weights.weights.dense, strict=True))
    sparse = dict(sorted(weights.weights.sparse.items(), key=lambda item: -abs(item[1])))
    if options.json:
        print_json(
            {
                "weights": weights.source,
                "format": weights.format,
                "l1_norm": norm,
                "dense": dense,
                "sparse": sparse,
                "not_tuned": dict(weights.fixed_weights),
            }
        )
        return
    print(
        f"{mark_invalid_utf8(weights.source)}: {weights.format}, {len(dense)} dense weights of L1 "
        f"norm {norm:.6g}, {len(sparse)} sparse ones"
    )
    tuned = [(n, value, f"{100 * abs(value) / (norm or 1.0):.1f}%") for n, value in dense.items()]
    fixed = [(n, value, "not tuned") for n, value in weights.fixed_weights.items()]
    rows = [(mark_invalid_utf8(n), f"{value:.6g}", share) for n, value, share in (*tuned, *fixed)]
    if rows:
        print_table(("feature", "weight", "share"), rows, left=1)
    if learned_with := spell_list_changes(weights.changes):
        print(Message(f"learned with {' '.join(map(mark_invalid_utf8, learned_with))}"))
    shown = list(sparse.items())[: options.top or None]
    if shown:
        print()
        rows_of_sparse = [(mark_invalid_utf8(name), f"{value:.6g}") for name, value in shown]
        print_table(("sparse feature", "weight"), rows_of_sparse, left=1)
        _print_more(len(sparse) - len(shown))


def _show_history(
    history: WeightHistory, use: SparseUse | None, options: WeightsShowCommand
) -> None:
    if options.json:
        print_json(
            {
                "run": history.source,
                "result_is": history.origin,
                "iterations": [weights and dict(weights) for weights in history.iterations],
                "result": None if history.result is None else dict(history.result),
                "active": None if use is None else use.shares,
                "distinct_hypotheses": None if use is None else use.hypotheses,
            }
        )
        return
    count = count_noun(len(history.iterations), "iteration")
    print(f"{mark_invalid_utf8(history.source)}: weights of {count}, and {history.origin}")
    _print_dense(history)
    sparse, shares = history.sparse, {} if use is None else use.shares
    by_weight = sorted((n for n, w in sparse.items() if w), key=lambda name: -abs(sparse[name]))
    if not (by_weight or shares):
        return
    print(f"\nlargest of {len(by_weight)} sparse weights that are not 0")
    _print_sparse(history, shares, by_weight, options.top)
    if use is not None:
        active = sorted((n for n in shares if shares[n] > 0.0), key=lambda name: -shares[name])
        print(f"\nmost active of {len(active)} sparse features in {use.hypotheses} hypotheses")
        _print_sparse(history, shares, active, options.top)


def _print_dense(history: WeightHistory) -> None:
    """Print dense weights: all iterations in a pipe, as many as fit on a terminal."""
    numbers = [str(number) for number in range(1, len(history.iterations) + 1)]
    heads = numbers if history.result is None else [*numbers, "result"]
    room = len(heads)
    if is_terminal():
        longest = max(map(len, history.dense), default=0)
        left = shutil.get_terminal_size().columns - longest - max(10, min(len(heads), _BARS)) - 6
        room = min(max(left // _CELL, 2), len(heads))
    # The first iteration and the newest ones.
    places = [0, *range(len(heads) - room + 1, len(heads))]
    rows = []
    for name in history.dense:
        values = history.of(name)
        cells = ["-" if (v := values[place]) is None else f"{v:.4f}" for place in places]
        rows.append((mark_invalid_utf8(name), _draw_bars(values), *cells))
    print_table(("feature", "iterations", *(heads[place] for place in places)), rows, left=2)
    if left_out := len(heads) - len(places):
        print(f"({left_out} more columns: --format tsv shows all)")


def _print_sparse(
    history: WeightHistory, shares: Mapping[str, float], names: Sequence[str], top: int
) -> None:
    sparse, shown = history.sparse, names[: top or None]
    rows: list[tuple[str, ...]] = []
    for name in shown:
        active = [f"{100 * shares.get(name, 0.0):.2f}%"] if shares else []
        weight = f"{sparse.get(name, 0.0):.6g}"
        rows.append((mark_invalid_utf8(name), _draw_bars(history.of(name)), weight, *active))
    if rows:
        head = ("sparse feature", "iterations", "weight", *(["active"] if shares else []))
        print_table(head, rows, left=2)
    _print_more(len(names) - len(shown))


def diff(options: WeightsDiffCommand) -> None:
    """Compare two weight vectors, the largest difference first."""
    a, b = resolve_weights(options.first), resolve_weights(options.second)
    fixed = [
        name
        for name in a.fixed_weights
        if b.fixed_weights.get(name, a.fixed_weights[name]) != a.fixed_weights[name]
    ]
    norms = algebra.compute_norm(a), algebra.compute_norm(b)
    if options.normalize:
        a, b = algebra.normalize(a), algebra.normalize(b)
    rows = algebra.compare_weights(a, b)
    cosine = algebra.cosine(rows)
    if options.json:
        print_json(
            {
                "a": a.source,
                "b": b.source,
                "l1_norms": norms,
                "normalized": bool(options.normalize),
                "cosine": cosine,
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
                    {"feature": name, "a": a.fixed_weights[name], "b": b.fixed_weights[name]}
                    for name in fixed
                ],
            }
        )
        return
    for letter, weights, norm in (("A", a, norms[0]), ("B", b, norms[1])):
        source = mark_invalid_utf8(weights.source)
        print(f"{letter}: {source}, {weights.format}, L1 norm {norm:.6g}")
    print(f"cosine {'undefined' if cosine is None else f'{cosine:.6f}'}")
    if not options.normalize and min(norms) > 0.0 and abs(norms[1] / norms[0] - 1.0) > 0.01:
        print("the norms differ: use --normalize to compare directions")
    changed = [row for row in rows if row.change != 0.0 or None in (row.first, row.second)]
    if shown := changed[: options.top or None]:
        print()
        print_blocks([tabulate(algebra.WeightDifference, shown)])
        _print_more(len(changed) - len(shown))
    print(f"\n{len(rows) - len(changed)} of {len(rows)} features have equal weights")
    for name in fixed:
        values = f"{a.fixed_weights[name]:g} {b.fixed_weights[name]:g}"
        print(f"not tuned, and different: {mark_invalid_utf8(name)} {values}")


def _draw_bars(values: tuple[float | None, ...]) -> str:
    """Draw bars of at most ``_BARS`` values, evenly chosen from a longer run."""
    n = len(values)
    if n > _BARS:
        values = tuple(values[round(k * (n - 1) / (_BARS - 1))] for k in range(_BARS))
    return format_sparkline(values, output_stream().encoding or "ascii")


def _print_more(count: int) -> None:
    if count > 0:
        print(f"({count} more: --top 0 shows all)")
