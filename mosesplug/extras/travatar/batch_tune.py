"""``batch-tune``: tune weights on n-best lists, as Travatar's program does.

The weights go to stdout as ``name=value name=value``; the score of the best ones to stderr.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

from mosesplug.cli.moses.arguments import Program, ProgramArguments, Style, run
from mosesplug.errors import UsageError
from mosesplug.options import Opt

if TYPE_CHECKING:
    from mosesplug.extras.travatar.measure import Measure
    from mosesplug.extras.travatar.tune import TuneSettings


@dataclass(frozen=True)
class BatchTuneArguments(ProgramArguments):
    """The options of ``batch-tune``."""

    nbest: Annotated[str, Opt("n-best lists, comma-separated (required)", metavar="FILES")] = ""
    forest: Annotated[str | None, Opt("rejected: forests are not read", metavar="FILES")] = None
    algorithm: Annotated[str, Opt("mert, greedy-mert, lbfgs or online", metavar="NAME")] = "mert"
    debug: Annotated[int, Opt("1 prints progress and each run", metavar="LEVEL")] = 0
    eval: Annotated[
        str,
        Opt(
            "measure with settings: bleu, ribes, ter, wer, zeroone, interp, ainterp",
            metavar="MEASURE",
        ),
    ] = "bleu"
    l1: Annotated[float, Opt("rejected unless 0: not in lbfgs", metavar="C")] = 0.0
    l2: Annotated[float, Opt("L2 regularization of lbfgs", metavar="C", minimum=0.0)] = 0.0
    ent: Annotated[float, Opt("rejected unless 0: no counterpart", metavar="C")] = 0.0
    margin_scale: Annotated[
        float, Opt("rejected unless 0: no counterpart", name="margin_scale", metavar="C")
    ] = 0.0
    mert_directions: Annotated[
        str,
        Opt(
            "coord, rand=NUM, or both separated by a blank",
            name="mert_directions",
            metavar="DIRECTIONS",
        ),
    ] = "coord"
    rand_seed: Annotated[int, Opt("random seed; 0: from the clock", name="rand_seed")] = 0
    rate: Annotated[float, Opt("learning rate of online", metavar="RATE", minimum=0.0)] = 1.0
    restarts: Annotated[int, Opt("random starting points of mert", minimum=0)] = 18
    stat_in: Annotated[
        str | None, Opt("statistics of each list, comma-separated", name="stat_in", metavar="FILES")
    ] = None
    stat_out: Annotated[
        str, Opt("write the statistics of the list only", name="stat_out", metavar="FILE")
    ] = ""
    threads: Annotated[int, Opt("number of threads; does not change the result", minimum=1)] = 1
    threshold: Annotated[
        float, Opt("smallest gain that continues a search", metavar="GAIN", minimum=0.0)
    ] = 1e-06
    trg_factors: Annotated[int, Opt("accepted; factors are found", name="trg_factors")] = 1
    update: Annotated[
        str, Opt("of online: perceptron, avgperceptron or adagrad", metavar="NAME")
    ] = "perceptron"
    weight_in: Annotated[
        str | None,
        Opt(
            "starting weights: name=value words (default: all 1)", name="weight_in", metavar="FILE"
        ),
    ] = None
    weight_ranges: Annotated[
        str | None,
        Opt(
            "limits of weights: MIN|MAX|NAME; without NAME those of all others",
            name="weight_ranges",
            metavar="RANGES",
        ),
    ] = None


PROGRAM = Program(
    "batch-tune",
    "Tune weights on n-best lists: id ||| words ||| score ||| name=value name=value",
    BatchTuneArguments,
    style=Style.ONE_DASH_ANYWHERE,
    others="REFERENCE",
    notes="Settings of measures: bleu:order=4,smooth=1,scope=sentence; ter:inverse=true;"
    "\nwer:reverse=true; ribes:alpha=0.25,beta=0.1; interp:0.4|bleu|0.6|ribes;"
    "\nainterp:A|bleu|B|ribes|2*A*B/(A+B). Statistics of zeroone may be any score: 0.83 1.",
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``batch-tune`` and exit."""
    run(PROGRAM, _batch_tune, arguments)


def _batch_tune(arguments: BatchTuneArguments) -> None:
    reference = _check(arguments)

    from mosesplug.extras.travatar.evaluation import find_measure

    measure = find_measure(arguments.eval)
    if arguments.stat_out:
        _write_statistics(arguments, measure, reference)
    else:
        _tune(arguments, measure, reference)


def _check(arguments: BatchTuneArguments) -> str:
    """Return the file of references, or raise UsageError."""
    if arguments.forest:
        raise UsageError("-forest: forests are not read; write n-best lists, and give -nbest")
    if not arguments.nbest:
        raise UsageError("give the n-best lists: -nbest FILES")
    if len(arguments.others) != 1:
        found = (
            f"{len(arguments.others)}: {' '.join(arguments.others)}" if arguments.others else "none"
        )
        raise UsageError(f"give one file of references after the options, not {found}")
    if arguments.margin_scale:
        raise UsageError(
            "-margin_scale has no counterpart: use mosesplug optimize --algorithm mira, whose "
            "margin is the cost"
        )
    lists, statistics = _names(arguments.nbest), _names(arguments.stat_in)
    if arguments.stat_out and len(lists) > 1:
        raise UsageError("-stat_out requires a single n-best list: give one -nbest file")
    if statistics and len(lists) != len(statistics):
        raise UsageError(
            f"-stat_in has {len(statistics)} files and -nbest has {len(lists)}: give the "
            "statistics of each list"
        )
    return arguments.others[0]


def _write_statistics(arguments: BatchTuneArguments, measure: Measure, reference: str) -> None:
    from formats.references import read_reference
    from formats.text import atomic_write
    from mosesplug.extras.travatar.lists import (
        format_statistics,
        list_path,
        read_list,
        score_list,
    )

    block = read_list(list_path(arguments.nbest))
    lines = read_reference(reference)
    with atomic_write(arguments.stat_out) as file:
        if block is not None:
            stats = score_list(block, measure, lines, arguments.threads)
            file.writelines(format_statistics(stats, measure))


def _tune(arguments: BatchTuneArguments, measure: Measure, reference: str) -> None:
    settings = _settings(arguments)
    settings.choose(measure)  # rejects settings before the files are read

    from formats.weights.flat import format_pairs, parse_pairs
    from formats.weights.lines import read_weight_file
    from mosesplug.extras.travatar.lists import list_path, read_tuning_set
    from mosesplug.extras.travatar.tune import tune
    from mosesplug.extras.travatar.weights import printed_weights

    path = arguments.weight_in
    weights = parse_pairs(path, read_weight_file(path)) if path else {}
    tuning_set = read_tuning_set(
        [list_path(name) for name in _names(arguments.nbest)],
        _names(arguments.stat_in),
        reference,
        measure,
        arguments.threads,
    )
    space = tuning_set.space
    if arguments.debug > 0:
        _log(
            f"{tuning_set.n_hyps} hypotheses of {tuning_set.n_sentences} sentences, "
            f"{len(space)} features"
        )
    if unused := [name for name in weights if name not in space.labels]:
        _log(f"warning: weights of features that no list has: {', '.join(unused[:10])}")
    seed = arguments.rand_seed or secrets.randbits(31)
    solution = tune(tuning_set, measure, weights, settings, seed)
    if arguments.debug > 0:
        for step in solution.history:
            _log(", ".join(f"{name}={value}" for name, value in step.items()))
    text = format_pairs(printed_weights(space, solution.weights, weights))
    sys.stderr.flush()
    sys.stderr.buffer.write(b"Best: %b => %.6g\n" % (text.rstrip(b"\n"), solution.score))
    sys.stdout.buffer.write(text)


def _settings(arguments: BatchTuneArguments) -> TuneSettings:
    from mosesplug.extras.travatar.tune import TuneSettings
    from mosesplug.extras.travatar.weights import parse_ranges

    return TuneSettings(
        algorithm=arguments.algorithm,
        restarts=arguments.restarts,
        directions=arguments.mert_directions,
        threshold=arguments.threshold,
        ranges=parse_ranges(arguments.weight_ranges or ""),
        update=arguments.update,
        rate=arguments.rate,
        l1=arguments.l1,
        l2=arguments.l2,
        ent=arguments.ent,
        threads=arguments.threads,
    )


def _names(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
