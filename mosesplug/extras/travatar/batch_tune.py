"""``batch-tune``: tune weights on n-best lists, as Travatar's program does.

The weights go to stdout as ``name=value name=value``; the score of the best ones to stderr.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from mosesplug.cli.moses.arguments import (
    Arguments,
    Program,
    ProgramOption,
    Style,
    parse_integer,
    parse_real,
    run,
)
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from mosesplug.extras.travatar.measure import Measure
    from mosesplug.extras.travatar.tune import TuneSettings

PROGRAM = Program(
    "batch-tune",
    "Tune weights on n-best lists: id ||| words ||| score ||| name=value name=value",
    (
        ProgramOption("nbest", "n-best lists, comma-separated (required)", "", "FILES"),
        ProgramOption("forest", "rejected: forests are not read", "", "FILES"),
        ProgramOption(
            "algorithm",
            "mert, greedy-mert, lbfgs or online",
            "",
            "NAME",
            default="mert",
        ),
        ProgramOption("debug", "1 prints progress and each run", "", "LEVEL", parse_integer, 0),
        ProgramOption(
            "eval",
            "measure with settings: bleu, ribes, ter, wer, zeroone, interp, ainterp",
            "",
            "MEASURE",
            default="bleu",
        ),
        ProgramOption("l1", "rejected unless 0: not in lbfgs", "", "C", parse_real, 0.0),
        ProgramOption("l2", "L2 regularization of lbfgs", "", "C", parse_real, 0.0),
        ProgramOption("ent", "rejected unless 0: no counterpart", "", "C", parse_real, 0.0),
        ProgramOption(
            "margin_scale", "rejected unless 0: no counterpart", "", "C", parse_real, 0.0
        ),
        ProgramOption(
            "mert_directions",
            "coord, rand=NUM, or both separated by a blank",
            "",
            "DIRECTIONS",
            default="coord",
        ),
        ProgramOption("rand_seed", "random seed; 0: from the clock", "", "N", parse_integer, 0),
        ProgramOption("rate", "learning rate of online", "", "RATE", parse_real, 1.0),
        ProgramOption("restarts", "random starting points of mert", "", "N", parse_integer, 18),
        ProgramOption("stat_in", "statistics of each list, comma-separated", "", "FILES"),
        ProgramOption("stat_out", "write the statistics of the list only", "", "FILE"),
        ProgramOption(
            "threads", "number of threads; does not change the result", "", "N", parse_integer, 1
        ),
        ProgramOption(
            "threshold", "smallest gain that continues a search", "", "GAIN", parse_real, 1e-6
        ),
        ProgramOption("trg_factors", "accepted; factors are found", "", "N", parse_integer, 1),
        ProgramOption(
            "update",
            "of online: perceptron, avgperceptron or adagrad",
            "",
            "NAME",
            default="perceptron",
        ),
        ProgramOption(
            "weight_in", "starting weights: name=value words (default: all 1)", "", "FILE"
        ),
        ProgramOption(
            "weight_ranges",
            "limits of weights: MIN|MAX|NAME; without NAME those of all others",
            "",
            "RANGES",
        ),
    ),
    Style.ONE_DASH_ANYWHERE,
    others="REFERENCE",
    notes=(
        "Settings of measures: bleu:order=4,smooth=1,scope=sentence; ter:inverse=true;"
        "\nwer:reverse=true; ribes:alpha=0.25,beta=0.1; interp:0.4|bleu|0.6|ribes;"
        "\nainterp:A|bleu|B|ribes|2*A*B/(A+B). Statistics of zeroone may be any score: 0.83 1."
    ),
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``batch-tune`` and exit."""
    run(PROGRAM, _batch_tune, arguments)


def _batch_tune(given: Arguments) -> None:
    reference = _check(given)

    from mosesplug.extras.travatar.evaluation import find_measure

    measure = find_measure(given["eval"])
    if given["stat_out"]:
        _write_statistics(given, measure, reference)
    else:
        _tune(given, measure, reference)


def _check(given: Arguments) -> str:
    """Return the file of references, or raise UsageError."""
    if given["forest"]:
        raise UsageError("-forest: forests are not read; write n-best lists, and give -nbest")
    if not given["nbest"]:
        raise UsageError("give the n-best lists: -nbest FILES")
    if len(given.others) != 1:
        found = f"{len(given.others)}: {' '.join(given.others)}" if given.others else "none"
        raise UsageError(f"give one file of references after the options, not {found}")
    for name, least in (("restarts", 0), ("threads", 1), ("threshold", 0), ("rate", 0), ("l2", 0)):
        if given[name] < least:
            raise UsageError(f"-{name} must be at least {least}, not {given[name]:g}")
    if given["margin_scale"]:
        raise UsageError(
            "-margin_scale has no counterpart: use mosesplug optimize --algorithm mira, whose "
            "margin is the cost"
        )
    lists, statistics = _names(given["nbest"]), _names(given["stat_in"])
    if given["stat_out"] and len(lists) > 1:
        raise UsageError("-stat_out is of a single list: give one -nbest file")
    if statistics and len(lists) != len(statistics):
        raise UsageError(
            f"-stat_in has {len(statistics)} files and -nbest has {len(lists)}: give the "
            "statistics of each list"
        )
    return given.others[0]


def _write_statistics(given: Arguments, measure: Measure, reference: str) -> None:
    from formats.references import read_reference
    from formats.text import atomic_write
    from mosesplug.extras.travatar.lists import (
        format_statistics,
        list_path,
        read_list,
        score_list,
    )

    block = read_list(list_path(given["nbest"]))
    lines = read_reference(reference)
    with atomic_write(given["stat_out"]) as file:
        if block is not None:
            stats = score_list(block, measure, lines, given["threads"])
            file.writelines(format_statistics(stats, measure))


def _tune(given: Arguments, measure: Measure, reference: str) -> None:
    settings = _settings(given)
    settings.choose(measure)  # rejects settings before the files are read

    from formats.weights.flat import format_pairs, parse_pairs
    from formats.weights.lines import read_weight_file
    from mosesplug.extras.travatar.lists import list_path, read_tuning_set
    from mosesplug.extras.travatar.tune import tune
    from mosesplug.extras.travatar.weights import printed_weights

    path = given["weight_in"]
    weights = parse_pairs(path, read_weight_file(path)) if path else {}
    tuning_set = read_tuning_set(
        [list_path(name) for name in _names(given["nbest"])],
        _names(given["stat_in"]),
        reference,
        measure,
        given["threads"],
    )
    space = tuning_set.space
    if given["debug"] > 0:
        _log(
            f"{tuning_set.n_hyps} hypotheses of {tuning_set.n_sentences} sentences, "
            f"{len(space)} features"
        )
    if unused := [name for name in weights if name not in space.labels]:
        _log(f"warning: weights of features that no list has: {', '.join(unused[:10])}")
    seed = given["rand_seed"] or secrets.randbits(31)
    solution = tune(tuning_set, measure, weights, settings, seed)
    if given["debug"] > 0:
        for step in solution.history:
            _log(", ".join(f"{name}={value}" for name, value in step.items()))
    text = format_pairs(printed_weights(space, solution.weights, weights))
    sys.stderr.flush()
    sys.stderr.buffer.write(b"Best: %b => %.6g\n" % (text.rstrip(b"\n"), solution.score))
    sys.stdout.buffer.write(text)


def _settings(given: Arguments) -> TuneSettings:
    from mosesplug.extras.travatar.tune import TuneSettings
    from mosesplug.extras.travatar.weights import parse_ranges

    return TuneSettings(
        algorithm=given["algorithm"],
        restarts=given["restarts"],
        directions=given["mert_directions"],
        threshold=given["threshold"],
        ranges=parse_ranges(given["weight_ranges"] or ""),
        update=given["update"],
        rate=given["rate"],
        l1=given["l1"],
        l2=given["l2"],
        ent=given["ent"],
        threads=given["threads"],
    )


def _names(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
