"""``mosesplug warm-up``: compile in advance."""

from __future__ import annotations

from dataclasses import asdict

from mosesplug.cli.learn.options import WarmUpCommand
from mosesplug.cli.shared.layouts import TableLayout, current_layout
from mosesplug.cli.shared.output import print_json
from mosesplug.cli.shared.tables import print_table
from mosesplug.extras.warm_up import ALGORITHMS
from mosesplug.extras.warm_up import warm_up as compile_kernels


def warm_up(options: WarmUpCommand) -> None:
    """Compile the inner loops of commands."""
    done = compile_kernels(options.tasks or (), options.algorithms or ALGORITHMS)
    if options.json:
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
