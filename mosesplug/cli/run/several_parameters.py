"""Options of ``mosesplug tune`` for several runs.

Apart from what reads them, which loads the tuning loop; ``--help`` needs neither.
"""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["Runs", "SelectRun"]

Runs = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="N",
        help="Tune so many times, with seeds S, S+1, ..., S+N-1 where --seed is S; each run in a "
        "directory of its own (run.1, run.2, ...), which is the decoder's current directory then. "
        "Prints how much they differ (Clark et al. 2011).",
    ),
]
SelectRun = Annotated[
    str | None,
    typer.Option(
        metavar="best-dev|last|average|best-heldout",
        help="With --runs, which weights each run ends with; default as that of --select without.",
    ),
]
