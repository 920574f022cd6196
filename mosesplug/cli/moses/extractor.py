"""``extractor``: write features and statistics of n-best lists for the optimizers."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

from mosesplug.cli.moses.arguments import Program, ProgramArguments, run, split_names
from mosesplug.cores import usable_cores
from mosesplug.errors import DataError, UsageError
from mosesplug.options import Opt

if TYPE_CHECKING:
    from mosesplug.moses_tools.extractor_files import Iteration


@dataclass(frozen=True)
class ExtractorArguments(ProgramArguments):
    """The options of ``extractor``."""

    sctype: Annotated[str, Opt("the metric", short="s", metavar="NAME")] = "BLEU"
    scconfig: Annotated[
        str | None, Opt("metric settings: name:value,name:value", short="c", metavar="SETTINGS")
    ] = None
    reference: Annotated[
        str | None, Opt("reference files, comma-separated", short="r", metavar="FILES")
    ] = None
    binary: Annotated[bool, Opt("write binary files", short="b")] = False
    nbest: Annotated[
        str | None, Opt("n-best lists, comma-separated", short="n", metavar="FILES")
    ] = None
    scfile: Annotated[str, Opt("statistics to write", short="S", metavar="FILE")] = "statscore.data"
    ffile: Annotated[str, Opt("features to write", short="F", metavar="FILE")] = "features.data"
    prev_ffile: Annotated[
        str | None, Opt("earlier features, comma-separated", short="E", metavar="FILES")
    ] = None
    prev_scfile: Annotated[
        str | None, Opt("earlier statistics, comma-separated", short="R", metavar="FILES")
    ] = None
    factors: Annotated[
        str | None, Opt("factors of each token to score, as in 0|2", short="f", metavar="LIST")
    ] = None
    filter: Annotated[
        str | None,
        Opt("command that rewrites each line before it is scored", short="l", metavar="CMD"),
    ] = None
    allow_duplicates: Annotated[bool, Opt("keep duplicates", short="d")] = False
    verbose: Annotated[int | None, Opt("above 0: print a summary", short="v")] = None


PROGRAM = Program(
    "extractor",
    "Write features and metric statistics of the distinct hypotheses in n-best lists.",
    ExtractorArguments,
    notes="With an interpolated metric (BLEU,TER), --factors and --filter take a value per metric.",
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``extractor`` and exit."""
    if arguments is None:  # a process of its own
        # NumPy's linear algebra is not used; its threads would wait for work, which costs time.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run(PROGRAM, write_features_and_statistics, arguments)


def write_features_and_statistics(arguments: ExtractorArguments) -> None:
    """Score n-best lists, merge them with earlier files, and write the result."""
    lists, references = split_names(arguments.nbest), split_names(arguments.reference)
    before = split_names(arguments.prev_ffile)
    scores_before = split_names(arguments.prev_scfile)
    for name, path in (("scfile", arguments.scfile), ("ffile", arguments.ffile)):
        if not path:
            raise UsageError(f"--{name} is empty: name the file to write")
    if len(before) != len(scores_before):
        raise UsageError(
            f"{len(before)} files in --prev-ffile and {len(scores_before)} in --prev-scfile: give"
            " one of each for every earlier iteration"
        )
    if lists and not references:
        raise UsageError("--reference is needed to score the lists in --nbest")
    if not (lists or before):
        raise UsageError("no n-best lists are given: use --nbest FILE")

    # Imported here: NumPy and Numba, which --help does not need. The n-best lists are read while
    # Numba loads.
    from mosesplug.ahead import ReadAhead
    from mosesplug.large_arrays import keep_freed_memory
    from mosesplug.moses_tools.distinct_lists import read_distinct

    keep_freed_memory()
    with ReadAhead(read_distinct(lists), 4) as ahead:
        from mosesplug.moses_tools.extraction import extract, write_extracted
        from mosesplug.moses_tools.scoring import Scorer

        earlier = _read_earlier(arguments, before, scores_before)
        scorer = None
        if lists:
            scorer = Scorer.load(
                arguments.sctype,
                arguments.scconfig or "",
                references,
                factors=arguments.factors or "",
                filter_command=arguments.filter or "",
            )
        merged = extract(
            earlier,
            ahead,
            scorer,
            with_duplicates=arguments.allow_duplicates,
            threads=usable_cores(),
        )
    write_extracted(merged, arguments.ffile, arguments.scfile, binary=arguments.binary)
    if (arguments.verbose or 0) > 0:
        print(
            f"{merged.metric}: {merged.tuning_set.n_hyps} of {merged.hypotheses} hypotheses"
            f" written, of {merged.tuning_set.n_sentences} sentences",
            file=sys.stderr,
        )


def _read_earlier(
    arguments: ExtractorArguments, features: Sequence[str], scores: Sequence[str]
) -> list[Iteration]:
    """Read the files of earlier iterations, which must have statistics of the metric."""
    from mosesplug.metrics import metric
    from mosesplug.moses_tools.extractor_files import read_iteration

    name = metric(arguments.sctype, arguments.scconfig or "").name
    iterations = []
    for pair in zip(features, scores, strict=True):
        iterations.append(iteration := read_iteration(*pair, threads=usable_cores()))
        if iteration.scores.metric != name:
            raise DataError(
                f"{iteration.score_file} has statistics of {iteration.scores.metric}, not of"
                f" {name}: give the --sctype that it was made with"
            )
    return iterations
