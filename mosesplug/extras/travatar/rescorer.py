"""``rescorer``: sort n-best lists by other weights, as Travatar's program does.

The best hypothesis of each sentence goes to stdout.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from mosesplug.cli.moses.arguments import Arguments, Program, ProgramOption, Style, run
from mosesplug.errors import UsageError

PROGRAM = Program(
    "rescorer",
    "Print the best hypotheses of n-best lists: id ||| words ||| score ||| name=value",
    (
        ProgramOption("nbest", "the n-best list (default: stdin)", "", "FILE"),
        ProgramOption("weight_in", "weights: name=value words (default: the scores)", "", "FILE"),
        ProgramOption("nbest_out", "write the sorted list with its new scores", "", "FILE"),
        ProgramOption("debug", "accepted", "", "LEVEL"),
        ProgramOption("mbr_eval", "rejected: use mosesplug mbr", "", "MEASURE"),
        ProgramOption("mbr_scale", "rejected: use mosesplug mbr", "", "SCALE"),
        ProgramOption("mbr_hyp_cnt", "rejected: use mosesplug mbr", "", "N"),
    ),
    Style.ONE_DASH_ANYWHERE,
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``rescorer`` and exit."""
    run(PROGRAM, _rescore, arguments)


def _rescore(given: Arguments) -> None:
    for name in ("mbr_eval", "mbr_scale", "mbr_hyp_cnt"):
        if given[name] is not None:
            raise UsageError(f"-{name}: use mosesplug mbr --nbest FILE --format travatar")

    from formats.text import atomic_write
    from formats.weights.flat import parse_pairs
    from formats.weights.lines import read_weight_file
    from mosesplug.extras.travatar.lists import list_path
    from mosesplug.extras.travatar.rescore import rescore

    path = given["weight_in"]
    weights = parse_pairs(path, read_weight_file(path)) if path else None
    source = list_path(given["nbest"] if given["nbest"] not in (None, "-") else "/dev/stdin")
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(atomic_write(given["nbest_out"])) if given["nbest_out"] else None
        for found in rescore(source, weights):
            sys.stdout.buffer.write(found.block.text(int(found.rows[0])) + b"\n")
            if out is not None:
                out.writelines(found.lines())
