"""``pro``: sample pairs of hypotheses for a classifier, as Moses' program does.

From the same seed it draws the same pairs as Moses' program. A hypothesis that occurs in several
iterations counts once for each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from mosesplug.cli.moses.arguments import (
    Arguments,
    Program,
    ProgramOption,
    Style,
    parse_integer,
    run,
)

PROGRAM = Program(
    "pro",
    "Sample pairs of hypotheses with different sentence BLEU as examples for a classifier.",
    (
        ProgramOption("scfile", "statistics file of an iteration", "S", "FILE", is_repeatable=True),
        ProgramOption("ffile", "feature file of an iteration", "F", "FILE", is_repeatable=True),
        ProgramOption(
            "random-seed", "random seed (default: from the clock)", "r", "N", parse_integer
        ),
        ProgramOption("output-file", "file for the examples (default: stdout)", "o", "FILE"),
        ProgramOption(
            "smooth-brevity-penalty",
            "smooth the brevity penalty too (Nakov et al. 2012)",
            "b",
        ),
    ),
    Style.BOOST,
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``pro`` and exit."""
    run(PROGRAM, _pro, arguments)


def _pro(arguments: Arguments) -> None:
    from formats.extractor.megam import format_examples
    from formats.text import atomic_write
    from mosesplug.metrics import metric
    from mosesplug.moses_tools.c_rand import CRand
    from mosesplug.moses_tools.extractor_files import load_extractor_files, require_metric
    from mosesplug.moses_tools.pro_examples import sample_examples

    seed = arguments["random-seed"]
    if seed is None:
        seed = int(time.time())
    print(f"Initialising random seed to {seed}", file=sys.stderr)
    files = load_extractor_files(arguments["ffile"], arguments["scfile"], distinct_by="nothing")
    require_metric(files, metric("BLEU"), arguments["scfile"][0])
    examples = sample_examples(
        files.tuning_set, CRand(seed).below, with_smooth_penalty=arguments["smooth-brevity-penalty"]
    )
    lines = format_examples(examples)
    if arguments["output-file"] is None:
        sys.stdout.buffer.writelines(lines)
        return
    with atomic_write(arguments["output-file"]) as file:
        file.writelines(lines)
