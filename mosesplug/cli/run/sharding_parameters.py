"""The options of shards and stale weights, the same in every command that learns online."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsyncOrder",
    "Asynchronous",
    "Keep",
    "Mixing",
    "Scheduler",
    "ShardDirectory",
    "Shards",
    "Workers",
]

Shards = Annotated[
    int | None,
    typer.Option(
        metavar="S",
        help="Online learners: parts of the sentences that learn at once and are mixed after "
        "each epoch; with --async, mini-batches under way at once, which with --online are as "
        "many decoders. [1]",
    ),
]

Mixing = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="Of the shards' weights: average; weighted, by updates; line-search, the best "
        "point between the old weights and the average; select, the average of the heaviest "
        "features. [line-search]",
    ),
]

Keep = Annotated[
    int | None,
    typer.Option(metavar="K", help="Sparse features that --mixing select keeps."),
]

Asynchronous = Annotated[
    bool,
    typer.Option(
        "--async",
        help="No parts and no mixing: workers see (with --online, decode) mini-batches with stale "
        "weights, and all change one set of weights.",
    ),
]

AsyncOrder = Annotated[
    str | None,
    typer.Option(
        metavar="ORDER",
        help="Apply changes by their arrival, or fixed: by batch, which can be repeated. [arrival]",
    ),
]

Workers = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="threads or processes; on stored lists, at most --threads. [threads]",
    ),
]

Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Work on a Dask cluster: tcp://HOST:PORT (pip install 'mosesplug[dask]').",
    ),
]

ShardDirectory = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Seen by all workers; lists lie there while other processes or machines learn. "
        "[temporary files]",
    ),
]
