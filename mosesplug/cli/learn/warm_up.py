"""``mosesplug warm-up``: compile in advance."""

from __future__ import annotations

from typing import Annotated

import typer

from mosesplug.cli.shared.completion import complete_algorithms
from mosesplug.cli.shared.parameters import Json

__all__ = ["warm_up"]


def warm_up(
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--for", metavar="COMMAND", help="A command, such as tune or kbmira; repeatable [all]."
        ),
    ] = None,
    algorithms: Annotated[
        list[str] | None,
        typer.Option(
            "--algorithm",
            metavar="NAME",
            help="An algorithm to run [mert, kbmira].",
            autocompletion=complete_algorithms,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compile the inner loops of commands, so that no later command waits for it.

    Runs each command on a few sentences. The compiled code is kept where later commands
    find it: in NUMBA_CACHE_DIR, beside the package, or in the user's cache directory.
    Installers and container images call this once.

    COMMAND is score, optimize, tune, forest, mbr or oracle, or a program of Moses:
    extractor, mert, kbmira or pro. tune includes "tune --forest" and "tune --online", and
    optimize includes "optimize --graphs"; these can also be named alone. Online learning
    uses mira, unless --algorithm names an online learner.

    Examples: mosesplug warm-up; mosesplug warm-up --for "tune --online" --algorithm arow
    """
    from dataclasses import asdict

    from mosesplug.api.installation import ALGORITHMS
    from mosesplug.api.installation import warm_up as compile_kernels
    from mosesplug.cli.shared.layouts import TableLayout, current_layout
    from mosesplug.cli.shared.output import print_json
    from mosesplug.cli.shared.tables import print_table

    done = compile_kernels(tasks or (), algorithms or ALGORITHMS)
    if json:
        print_json([asdict(each) for each in done])
        return
    if current_layout() is not TableLayout.TEXT:
        rows = [(each.task, str(each.kernels), f"{each.seconds:.1f}") for each in done]
        print_table(("command", "kernels compiled", "seconds"), rows, left=1)
        return
    for each in done:
        what = (
            f"{each.kernels} kernels compiled"
            if each.kernels
            else "all kernels were compiled before"
        )
        print(f"{each.task}: {what} ({each.seconds:.1f} s)")
