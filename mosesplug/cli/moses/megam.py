"""``megam_i686.opt``: the classifier of ``mert-moses.pl --pairwise-ranked``.

It has the command line, the prior and the result of Daumé III's ``megam`` for ``binary`` models
without a bias. A bias and other models are not supported: each pair of hypotheses is an example in
both directions, so the bias would be 0.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NoReturn

from mosesplug.cli.moses.arguments import Program, ProgramArguments, Style, run
from mosesplug.errors import DataError, UsageError
from mosesplug.options import Opt


@dataclass(frozen=True)
class MegamArguments(ProgramArguments):
    """The options of ``megam_i686.opt``."""

    fvals: Annotated[
        bool, Opt("each feature name is followed by its value (default: all values are 1)")
    ] = False
    maxi: Annotated[int, Opt("maximum number of iterations", minimum=1)] = 100
    nobias: Annotated[bool, Opt("fit no bias (required)")] = False
    lambda_: Annotated[
        float, Opt("precision of the Gaussian prior on weights", name="lambda", minimum=0.0)
    ] = 1
    quiet: Annotated[bool, Opt("print no summary of the fit on stderr")] = False


PROGRAM = Program(
    "megam_i686.opt",
    "Fit a classifier on examples of two classes; print one 'name value' per weight.",
    MegamArguments,
    style=Style.ONE_DASH,
    others="binary FILE",
    notes="The last line on stderr reports the loss and the classification error.",
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``megam_i686.opt`` and exit."""
    run(PROGRAM, _megam, arguments)


def _megam(arguments: MegamArguments) -> None:
    _check(arguments)
    import numpy as np
    from scipy.sparse import csr_array

    from formats.extractor.megam import read_examples
    from mosesplug.optimizers.batch.ranking.logistic import fit_logistic

    read = read_examples(arguments.others[1], with_values=arguments.fvals)
    shape = (len(read.labels), len(read.names))
    examples = csr_array((read.data, read.indices, read.indptr), shape=shape)
    examples.sum_duplicates()
    fit = fit_logistic(
        examples, read.labels, precision=arguments.lambda_, max_iterations=arguments.maxi
    )
    if not fit.weights.any():
        raise DataError(
            f"{arguments.others[1]}: the features do not separate the classes, all weights are zero"
        )
    if not arguments.quiet:
        wrong = np.mean((examples @ fit.weights > 0.0) != (read.labels > 0.5))
        ended = "minimum found" if fit.has_converged else "stopped by -maxi"
        print(
            f"it {fit.iterations} examples {len(read.labels)} loss {fit.loss:.6g} "
            f"er {wrong:.5f} ({ended})",
            file=sys.stderr,
        )
    lines = (
        f"{name} {np.format_float_positional(weight, trim='0')}\n"
        for name, weight in zip(read.names, fit.weights, strict=True)
    )
    sys.stdout.buffer.write("".join(lines).encode("utf-8", "surrogateescape"))


def _check(arguments: MegamArguments) -> None:
    """Check the options."""
    if len(arguments.others) != 2 or arguments.others[0] != "binary":
        raise UsageError(
            f"after the options, give 'binary FILE', not {' '.join(arguments.others)!r}"
        )
    if not arguments.nobias:
        raise UsageError("a bias is not supported: give -nobias, as mert-moses.pl does")
