"""``mosesplug warm-up``: compile in advance."""

from __future__ import annotations

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
        print_json(done)
        return
    if current_layout() is not TableLayout.TEXT:
        rows = [(task.task, str(task.kernels), f"{task.seconds:.1f}") for task in done]
        print_table(("command", "kernels compiled", "seconds"), rows, left=1)
        return
    for task in done:
        what = (
            f"{task.kernels} kernels compiled"
            if task.kernels
            else "all kernels were compiled before"
        )
        print(f"{task.task}: {what} ({task.seconds:.1f} s)")
