"""``mosesplug nbest ls``: the iterations of a store."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer

from mosesplug.cli.shared.parameters import Json, Store
from mosesplug.cli.shared.tables import format_change

__all__ = ["ls"]


def ls(
    store: Store,
    oracle: Annotated[
        bool,
        typer.Option(
            "--oracle/--no-oracle",
            help="Look for the best choice in each iteration's lists: it reads all of them.",
        ),
    ] = True,
    json: Json = False,
) -> None:
    """The iterations of a store: lists, what was new in them, size, scores.

    The date is that of storing the lists, in local time, with --json in UTC. The oracle is the best
    choice that a greedy search finds for the corpus. As in the table of a run, change is the
    largest difference of a weight between those found in an iteration, whose score in the merged
    lists stands beside it, and those that it was decoded with.

    Example: mosesplug nbest ls tuning
    """
    from mosesplug.cli.shared.output import print_json, progress_bar
    from mosesplug.cli.shared.tables import print_table
    from mosesplug.inspection.overview import overview
    from mosesplug.inspection.run import opened

    with opened(store) as run:
        lines = []
        with progress_bar(json) as progress:
            for line in overview(run, oracles=oracle):
                lines.append(line)
                progress(len(lines), len(run.records), "iterations")
        if json:
            found = {"store": str(run.path), "signature": run.signature}
            print_json({**found, "iterations": [asdict(line) for line in lines]})
            return
        name = run.signature.partition("|")[0]
        head = [
            "iteration",
            "date",
            "sentences",
            "hypotheses",
            "new",
            "graphs",
            "size",
            "change",
        ]
        head += [name, "oracle", "in lists"]
        rows = [
            (
                str(line.number),
                "" if line.date is None else _date(line.date),
                str(line.sentences),
                str(line.hypotheses),
                str(line.new_hypotheses),
                str(line.graphs),
                _size(line.stored_bytes),
                format_change(line.change),
                f"{line.score:.4f}",
                "" if line.oracle is None else f"{line.oracle:.4f}",
                "" if line.optimum is None else f"{line.optimum:.4f}",
            )
            for line in lines
        ]
    # What no iteration has is no column.
    wanted = [
        place
        for place, column in enumerate(zip(*rows, strict=True))
        if any(cell not in ("", "0") for cell in column)
    ]
    print_table(
        [head[place] for place in wanted], [[row[place] for place in wanted] for row in rows]
    )


def _date(text: str) -> str:
    """An ISO 8601 date of UTC in local time, to the minute."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"


def _size(count: int) -> str:
    """Bytes for people."""
    if count < 1000:
        return f"{count} B"
    power = min((len(str(count)) - 1) // 3, 4)
    return f"{count / 1000**power:.3g} {' KMGT'[power]}B"
