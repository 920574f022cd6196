"""``pro``: sample pairs of hypotheses for a classifier, as Moses' program does.

From the same seed it draws the same pairs as Moses' program. A hypothesis that occurs in several
iterations counts once for each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from mosesplug.cli.moses.arguments import (
    Arguments,
    Program,
    ProgramOption,
    Style,
    parse_integer,
    run,
)
from mosesplug.errors import DataError

if TYPE_CHECKING:
    from formats.extractor.megam import Examples
    from mosesplug.optimizers.batch.ranking.pairs import RankedPairs
    from mosesplug.tuning_set import TuningSet

__all__ = ["PROGRAM", "main"]

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

SMALLEST = 1e-5
"""Feature differences up to this absolute value are not written."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``pro`` and exit."""
    run(PROGRAM, _pro, arguments)


def _pro(arguments: Arguments) -> None:
    from formats.extractor.megam import format_examples
    from formats.text import atomic_write
    from mosesplug.metrics import metric
    from mosesplug.metrics.sentence_bleu import sentence_bleu_moses, sentence_bleu_nakov
    from mosesplug.moses_tools.c_rand import CRand
    from mosesplug.moses_tools.extractor_files import load_extractor_files, require_metric
    from mosesplug.optimizers.batch.ranking.pairs import PairSampling, sample_pairs

    seed = arguments["random-seed"]
    if seed is None:
        seed = int(time.time())
    print(f"Initialising random seed to {seed}", file=sys.stderr)
    files = load_extractor_files(arguments["ffile"], arguments["scfile"], distinct_by="nothing")
    require_metric(files, metric("BLEU"))
    made = files.tuning_set
    score = sentence_bleu_nakov if arguments["smooth-brevity-penalty"] else sentence_bleu_moses
    pairs = sample_pairs(made.offsets, score(made.stats), CRand(seed).below, PairSampling())
    if not len(pairs):
        raise DataError(
            "no two hypotheses of a sentence differ enough in sentence BLEU: use longer n-best "
            "lists or more sentences"
        )
    lines = format_examples(_examples(made, pairs))
    if arguments["output-file"] is None:
        sys.stdout.buffer.writelines(lines)
        return
    with atomic_write(arguments["output-file"]) as file:
        file.writelines(lines)


def _examples(made: TuningSet, pairs: RankedPairs) -> Examples:
    """Return two examples per pair: better minus worse hypothesis, and the reverse."""
    import numpy as np
    from scipy.sparse import vstack

    from formats.extractor.megam import Examples
    from mosesplug.optimizers.batch.ranking.pairs import differences

    one_way = differences(made, pairs)
    one_way.data = one_way.data.astype(np.float32).astype(np.float64)
    one_way.data[np.abs(one_way.data) <= SMALLEST] = 0.0
    one_way.eliminate_zeros()
    one_way.sort_indices()
    both = vstack([one_way, -one_way], format="csr")
    both = both[np.arange(2 * len(pairs)).reshape(2, -1).T.reshape(-1)]
    n_dense = made.space.n_dense
    return Examples(
        np.tile([1.0, 0.0], len(pairs)),
        (*(f"F{column}" for column in range(n_dense)), *made.space.sparse),
        both.indptr.astype(np.int64),
        both.indices.astype(np.int32),
        both.data,
    )
