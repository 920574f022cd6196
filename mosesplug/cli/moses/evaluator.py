"""``evaluator``: score translations, with bootstrap confidence intervals."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NoReturn

from mosesplug.cli.moses.arguments import Program, ProgramArguments, run, split_names
from mosesplug.cores import usable_cores
from mosesplug.errors import UsageError
from mosesplug.options import Opt


@dataclass(frozen=True)
class EvaluatorArguments(ProgramArguments):
    """The options of ``evaluator``."""

    sctype: Annotated[
        tuple[str, ...], Opt("a metric (default BLEU)", short="s", metavar="NAME")
    ] = ()
    scconfig: Annotated[
        str | None, Opt("settings of the preceding --sctype", short="c", metavar="SETTINGS")
    ] = None
    reference: Annotated[
        str | None, Opt("reference files, comma-separated", short="R", metavar="FILES")
    ] = None
    candidate: Annotated[
        str | None, Opt("translation files, comma-separated", short="C", metavar="FILES")
    ] = None
    nbest: Annotated[
        str | None,
        Opt(
            "n-best lists whose first hypotheses are scored, comma-separated",
            short="n",
            metavar="FILES",
        ),
    ] = None
    bootstrap: Annotated[
        int, Opt("samples for a 95 % confidence interval", short="b", minimum=0)
    ] = 0
    rseed: Annotated[
        int | None, Opt("seed of the samples (default: from the clock)", short="r")
    ] = None
    factors: Annotated[
        str | None,
        Opt("token factors for the preceding --sctype, as in 0|2", short="f", metavar="LIST"),
    ] = None
    filter: Annotated[
        str | None,
        Opt("command that rewrites each line for the preceding --sctype", short="l", metavar="CMD"),
    ] = None


PROGRAM = Program(
    "evaluator",
    "Print scores of translations: one line for each file and metric.",
    EvaluatorArguments,
    notes="With several files, each line shows the file; with several metrics, the metric:\n"
    "\n"
    "  evaluator --sctype BLEU --scconfig reflen:closest \\\n"
    "            --sctype CDER,PER --scconfig weights:0.25+0.75 \\\n"
    "            --candidate CANDIDATE --reference REFERENCE",
)


@dataclass(frozen=True)
class MetricRequest:
    """A metric with its options on the command line."""

    sctype: str = "BLEU"
    scconfig: str = ""
    factors: str = ""
    filter: str = ""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``evaluator`` and exit."""
    run(PROGRAM, evaluate, arguments)


def evaluate(arguments: EvaluatorArguments) -> None:
    """Score every file with every metric."""
    references, candidates, lists = map(
        split_names, (arguments.reference, arguments.candidate, arguments.nbest)
    )
    if not references:
        raise UsageError("name at least one reference with --reference")
    if bool(candidates) == bool(lists):
        raise UsageError("name translations with --candidate or n-best lists with --nbest")
    samples = arguments.bootstrap
    wanted = _parse_metrics(arguments)

    # Imported here: these import NumPy and Numba, which --help does not need.
    from mosesplug.moses_tools.c_rand import CRand
    from mosesplug.moses_tools.scoring import Scorer
    from mosesplug.results.scores.scores import (
        bootstrap,
        corpus_score,
        read_first_best,
        read_translation,
    )

    scorers = [
        Scorer.load(
            one.sctype,
            one.scconfig,
            references,
            factors=one.factors,
            filter_command=one.filter,
        )
        for one in wanted
    ]
    seed = int(time.time()) if arguments.rseed is None else arguments.rseed
    if samples:
        print(f"Seeding random numbers with {seed}", file=sys.stderr)
    random = CRand(seed)
    read = read_translation if candidates else read_first_best
    for path in (*candidates, *lists):
        hypotheses = read(path, scorers[0].n_sentences)
        for scorer in scorers:
            statistics = scorer.statistics(hypotheses, threads=usable_cores())
            fields = [path] if len(candidates) + len(lists) > 1 else []
            fields += [scorer.metric.name] if len(scorers) > 1 else []
            if samples:
                interval = bootstrap(scorer.metric, statistics, samples, random)
                fields += [f"{interval.mean:.4f}", f"[{interval.low:.4f},{interval.high:.4f}]"]
            else:
                fields.append(f"{corpus_score(scorer.metric, statistics):.4f}")
            print("\t".join(fields), flush=True)


def _parse_metrics(arguments: EvaluatorArguments) -> list[MetricRequest]:
    """Return the metrics; the settings of each follow it on the command line."""
    requests: list[MetricRequest] = []
    for name, value in arguments.given:
        if name == "sctype":
            requests.append(MetricRequest(value))
        elif name in ("scconfig", "factors", "filter"):
            if not requests:
                raise UsageError(f"--{name} must follow the --sctype that it applies to")
            requests[-1] = replace(requests[-1], **{name: value})
    return requests or [MetricRequest()]
