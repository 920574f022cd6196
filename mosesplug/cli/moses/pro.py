"""``pro``: sample pairs of hypotheses for a classifier, as Moses' program does.

From the same seed it draws the same pairs as Moses' program. A hypothesis that occurs in several
iterations counts once for each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NoReturn

from mosesplug.cli.moses.arguments import Program, ProgramArguments, Style, run
from mosesplug.options import Opt


@dataclass(frozen=True)
class ProArguments(ProgramArguments):
    """The options of ``pro``."""

    scfile: Annotated[
        tuple[str, ...], Opt("statistics file of an iteration", short="S", metavar="FILE")
    ] = ()
    ffile: Annotated[
        tuple[str, ...], Opt("feature file of an iteration", short="F", metavar="FILE")
    ] = ()
    random_seed: Annotated[int | None, Opt("random seed (default: from the clock)", short="r")] = (
        None
    )
    output_file: Annotated[
        str | None, Opt("file for the examples (default: stdout)", short="o", metavar="FILE")
    ] = None
    smooth_brevity_penalty: Annotated[
        bool, Opt("smooth the brevity penalty too (Nakov et al. 2012)", short="b")
    ] = False


PROGRAM = Program(
    "pro",
    "Sample pairs of hypotheses with different sentence BLEU as examples for a classifier.",
    ProArguments,
    style=Style.BOOST,
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``pro`` and exit."""
    run(PROGRAM, _pro, arguments)


def _pro(arguments: ProArguments) -> None:
    from formats.extractor.megam import format_examples
    from formats.text import atomic_write
    from mosesplug.metrics import metric
    from mosesplug.moses_tools.c_rand import CRand
    from mosesplug.moses_tools.extractor_files import load_extractor_files, require_metric
    from mosesplug.moses_tools.pro_examples import sample_examples

    seed = arguments.random_seed
    if seed is None:
        seed = int(time.time())
    print(f"Initialising random seed to {seed}", file=sys.stderr)
    files = load_extractor_files(arguments.ffile, arguments.scfile, distinct_by="nothing")
    require_metric(files, metric("BLEU"), arguments.scfile[0])
    examples = sample_examples(
        files.tuning_set, CRand(seed).below, with_smooth_penalty=arguments.smooth_brevity_penalty
    )
    lines = format_examples(examples)
    if arguments.output_file is None:
        sys.stdout.buffer.writelines(lines)
        return
    with atomic_write(arguments.output_file) as file:
        file.writelines(lines)
