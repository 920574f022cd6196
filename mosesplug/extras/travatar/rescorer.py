"""``rescorer``: sort n-best lists by other weights, as Travatar's program does.

The best hypothesis of each sentence goes to stdout.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NoReturn

from mosesplug.cli.moses.arguments import Program, ProgramArguments, Style, run
from mosesplug.errors import UsageError
from mosesplug.options import Opt


@dataclass(frozen=True)
class RescorerArguments(ProgramArguments):
    """The options of ``rescorer``."""

    nbest: Annotated[str | None, Opt("the n-best list (default: stdin)", metavar="FILE")] = None
    weight_in: Annotated[
        str | None,
        Opt("weights: name=value words (default: the scores)", name="weight_in", metavar="FILE"),
    ] = None
    nbest_out: Annotated[
        str | None,
        Opt("write the sorted list with its new scores", name="nbest_out", metavar="FILE"),
    ] = None
    debug: Annotated[str | None, Opt("accepted", metavar="LEVEL")] = None
    mbr_eval: Annotated[
        str | None, Opt("rejected: use mosesplug mbr", name="mbr_eval", metavar="MEASURE")
    ] = None
    mbr_scale: Annotated[
        str | None, Opt("rejected: use mosesplug mbr", name="mbr_scale", metavar="SCALE")
    ] = None
    mbr_hyp_cnt: Annotated[
        str | None, Opt("rejected: use mosesplug mbr", name="mbr_hyp_cnt", metavar="N")
    ] = None


PROGRAM = Program(
    "rescorer",
    "Print the best hypotheses of n-best lists: id ||| words ||| score ||| name=value",
    RescorerArguments,
    style=Style.ONE_DASH_ANYWHERE,
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``rescorer`` and exit."""
    run(PROGRAM, _rescore, arguments)


def _rescore(arguments: RescorerArguments) -> None:
    for name, _ in arguments.given:
        if name in ("mbr_eval", "mbr_scale", "mbr_hyp_cnt"):
            raise UsageError(f"-{name}: use mosesplug mbr --nbest FILE --format travatar")

    from formats.text import atomic_write
    from formats.weights.flat import parse_pairs
    from formats.weights.lines import read_weight_file
    from mosesplug.extras.travatar.lists import list_path
    from mosesplug.extras.travatar.rescore import rescore

    path = arguments.weight_in
    weights = parse_pairs(path, read_weight_file(path)) if path else None
    source = list_path(arguments.nbest if arguments.nbest not in (None, "-") else "/dev/stdin")
    with contextlib.ExitStack() as stack:
        out = (
            stack.enter_context(atomic_write(arguments.nbest_out)) if arguments.nbest_out else None
        )
        for found in rescore(source, weights):
            sys.stdout.buffer.write(found.block.text(int(found.rows[0])) + b"\n")
            if out is not None:
                out.writelines(found.lines())
