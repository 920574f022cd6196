"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mosesplug.cli.shared.completion import complete_metrics
from mosesplug.cores import usable_cores
from mosesplug.errors import UsageError
from mosesplug.options import Opt

THREADS = usable_cores()

Store = Annotated[
    Path, Opt("A working directory, or the store in it.", is_positional=True, metavar="STORE")
]
Lists = Annotated[
    list[Path],
    Opt(
        "A working directory or store, or n-best lists of one text.",
        is_positional=True,
        metavar="STORE|NBEST...",
    ),
]
SentenceId = Annotated[
    str, Opt("A sentence id, or its number from 0.", is_positional=True, metavar="SENTENCE")
]
Hypothesis = Annotated[
    str | None,
    Opt("A rank, or 1-best, oracle, hope, fear [1-best].", is_positional=True, metavar="A"),
]
OtherHypothesis = Annotated[str | None, Opt("Another [oracle].", is_positional=True, metavar="B")]
Source = Annotated[Path | None, Opt("The source sentences.", name="source")]
References = Annotated[
    Path | None,
    Opt("The references: a file, or a prefix of several.", name="refs", exists="references"),
]
ListReferences = Annotated[
    Path | None,
    Opt(
        "The references: a file, or a prefix; required for NBEST.", name="refs", exists="references"
    ),
]
IterationOption = Annotated[
    str, Opt("The lists of one iteration, or merged.", name="iteration", metavar="N|all")
]
StoreWeights = Annotated[
    str | None,
    Opt(
        "Weights of the model score, in any format [the run's result].",
        name="weights",
        metavar="FILE|RUN",
        exists="weights",
    ),
]
ListWeights = Annotated[
    str | None,
    Opt(
        "Weights that rank the lists, in any format.",
        name="weights",
        metavar="FILE|RUN",
        exists="weights",
    ),
]
GraphWeights = Annotated[
    str | None,
    Opt(
        "Weights, in any format [the file weights of GRAPHS].",
        name="weights",
        metavar="FILE|RUN",
        exists="weights",
    ),
]
SparseWeights = Annotated[
    Path | None, Opt("Sparse weights, name value a line.", metavar="FILE", requires=("weights",))
]
GraphSparse = Annotated[Path | None, Opt("Sparse weights, name value a line.", metavar="FILE")]
MetricName = Annotated[
    str | None,
    Opt(
        "BLEU, CDER, CER, CHRF, GLEU, MER, METEOR, PER, TER, TER-SACREBLEU, WER, or a sum. [BLEU; "
        "of a store, the metric of its run]",
        metavar="NAME",
        complete=complete_metrics,
    ),
]
OutsideScores = Annotated[
    list[str] | None,
    Opt(
        "Add a metric: a file with one score per hypothesis; repeatable.",
        name="scores",
        metavar="NAME=FILE",
        exists="scores",
    ),
]
MetricSettings = Annotated[
    str, Opt("Metric settings, as reflen:shortest,case:false.", metavar="SETTINGS")
]
Metrics = Annotated[
    list[str] | None,
    Opt(
        "A metric, as 'CHRF beta:2'; may be repeated [BLEU, TER-SACREBLEU, CHRF beta:2].",
        name="metric",
        metavar="'NAME [SETTINGS]'",
        complete=complete_metrics,
    ),
]
SentenceIdsOfLines = Annotated[
    bool | None, Opt("Lines begin with sentence ids [if they look so].", name="ids")
]
Errors = Annotated[
    int | None,
    Opt("Count edits of WER, MER, CER; show N aligned sentences.", minimum=0, metavar="N"),
]
Percent = Annotated[bool, Opt("Scores from 0 to 100, as sacrebleu prints them.", name="percent")]
Seed = Annotated[int, Opt("Seed of all random choices.", minimum=0, metavar="N")]
Threads = Annotated[int, Opt("Threads; the result does not depend on it.", minimum=1, metavar="N")]
STDOUT_OPTION = Opt(
    "The output [stdout].", name="output", short="o", metavar="FILE", is_output=True
)
Output = Annotated[Path | None, STDOUT_OPTION]
JSON_OPTION = Opt("Print one JSON document instead of a table.", name="json")
Json = Annotated[bool, JSON_OPTION]
Quiet = Annotated[bool, Opt("Print results and errors only.", name="quiet")]


def parse_iteration(text: str) -> int | None:
    """Return the number of ``--iteration``, None for all.

    Raises:
        UsageError: it is neither a number nor ``all``.
    """
    if text == "all":
        return None
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"--iteration takes a number from 1, or all, not {text!r}")
    return int(text)
