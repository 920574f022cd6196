"""``extractor``: write features and statistics of n-best lists for the optimizers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

from mosesplug.cli.moses.arguments import (
    Arguments,
    Program,
    ProgramOption,
    parse_integer,
    run,
    split_names,
)
from mosesplug.cores import usable_cores
from mosesplug.errors import DataError, UsageError

if TYPE_CHECKING:
    from mosesplug.moses_tools.extraction import ScoredBlock
    from mosesplug.moses_tools.extractor_files import Iteration

PROGRAM = Program(
    "extractor",
    "Write features and metric statistics of the distinct hypotheses in n-best lists.",
    (
        ProgramOption("sctype", "the metric", short="s", value="NAME", default="BLEU"),
        ProgramOption(
            "scconfig", "metric settings: name:value,name:value", short="c", value="SETTINGS"
        ),
        ProgramOption("reference", "reference files, comma-separated", short="r", value="FILES"),
        ProgramOption("binary", "write binary files", short="b"),
        ProgramOption("nbest", "n-best lists, comma-separated", short="n", value="FILES"),
        ProgramOption(
            "scfile", "statistics to write", short="S", value="FILE", default="statscore.data"
        ),
        ProgramOption(
            "ffile", "features to write", short="F", value="FILE", default="features.data"
        ),
        ProgramOption("prev-ffile", "earlier features, comma-separated", short="E", value="FILES"),
        ProgramOption(
            "prev-scfile", "earlier statistics, comma-separated", short="R", value="FILES"
        ),
        ProgramOption(
            "factors", "factors of each token to score, as in 0|2", short="f", value="LIST"
        ),
        ProgramOption(
            "filter", "command that rewrites each line before it is scored", short="l", value="CMD"
        ),
        ProgramOption("allow-duplicates", "keep duplicates", short="d"),
        ProgramOption(
            "verbose", "above 0: print a summary", short="v", value="N", convert=parse_integer
        ),
    ),
    notes="With an interpolated metric (BLEU,TER), --factors and --filter take a value per metric.",
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``extractor`` and exit."""
    if arguments is None:  # a process of its own
        # NumPy's linear algebra is not used; its threads would wait for work, which costs time.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    run(PROGRAM, write_features_and_statistics, arguments)


def write_features_and_statistics(arguments: Arguments) -> None:
    """Score n-best lists, merge them with earlier files, and write the result.

    Raises:
        UsageError: the arguments contradict each other.
        FormatError, DataError: a file cannot be used.
    """
    lists, references, before = (
        split_names(arguments[name]) for name in ("nbest", "reference", "prev-ffile")
    )
    scores_before = split_names(arguments["prev-scfile"])
    for name in ("scfile", "ffile"):
        if not arguments[name]:
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
        from mosesplug.moses_tools.extraction import extract, score_lists, write_extracted
        from mosesplug.moses_tools.scoring import Scorer

        earlier = _read_earlier(arguments, before, scores_before)
        blocks: Iterable[ScoredBlock] = ()
        if lists:
            scorer = Scorer.load(
                arguments["sctype"],
                arguments["scconfig"] or "",
                references,
                factors=arguments["factors"] or "",
                filter_command=arguments["filter"] or "",
            )
            blocks = score_lists(ahead, scorer, threads=usable_cores())
        merged, n_read = extract(earlier, blocks, with_duplicates=arguments["allow-duplicates"])
    write_extracted(merged, arguments["ffile"], arguments["scfile"], binary=arguments["binary"])
    if (arguments["verbose"] or 0) > 0:
        print(
            f"{merged.metric}: {len(merged.dense)} of {n_read} hypotheses written, of"
            f" {len(merged.sentence_ids)} sentences",
            file=sys.stderr,
        )


def _read_earlier(
    arguments: Arguments, features: Sequence[str], scores: Sequence[str]
) -> list[Iteration]:
    """Read the files of earlier iterations, which must have statistics of the metric."""
    from mosesplug.metrics import metric
    from mosesplug.moses_tools.extractor_files import read_iteration

    name = metric(arguments["sctype"], arguments["scconfig"] or "").name
    iterations = []
    for pair in zip(features, scores, strict=True):
        iterations.append(iteration := read_iteration(*pair, threads=usable_cores()))
        if iteration.scores.metric != name:
            raise DataError(
                f"{iteration.score_file} has statistics of {iteration.scores.metric}, not of"
                f" {name}: give the --sctype that it was made with"
            )
    return iterations
