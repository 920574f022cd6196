"""Options of the commands that score translations; nothing heavy is imported here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from mosesplug.cli.inspect.list_options import list_settings
from mosesplug.cli.shared.commands import NestedSettings
from mosesplug.cli.shared.completion import complete_metrics
from mosesplug.cli.shared.parameters import (
    Errors,
    Json,
    Metrics,
    MetricSettings,
    OutsideScores,
    Percent,
    Quiet,
    References,
    Seed,
    SentenceIdsOfLines,
)
from mosesplug.options import Opt, list_options
from mosesplug.settings.lists import NO_SETTINGS, ListSettings
from mosesplug.settings.scores.commands import ScoreCommands, make_score_commands

_UNUSED = (
    *("ids", "dense", "drop-feature", "rename", "templates", "add-feature"),
    *("derive", "scores"),
)
"""Settings of lists that scores do not depend on."""


@dataclass(frozen=True)
class ScoreCommand:
    """Score a translation: corpus scores, 95 % intervals and signatures.

    Texts are scored as they are, tokens separated by blanks; tokenize:NAME tokenizes them as
    sacrebleu does. TER, WER, CER, MER, PER and CDER are error rates: less is better.
    normalize:lower+punct normalizes their text. Sentence scores of BLEU are BLEU+1 (Lin &
    Och 2004).

    Metrics: BLEU, CDER, CER, CHRF, GLEU, MER, METEOR, PER, TER (as in Moses), TER-SACREBLEU, WER,
    and those of plug-ins.

    --scores adds a metric that another program computed: a line for each sentence, or with --nbest
    for each hypothesis. --score-command adds one that a command computes now.

    Example: mosesplug score output.en dev.en --metric 'BLEU tokenize:13a' --metric 'CHRF beta:2'
    """

    translation: Annotated[
        Path, Opt("The translation, one sentence a line.", is_positional=True, metavar="HYP")
    ]
    references: Annotated[
        list[Path] | None,
        Opt(
            "References: files, or one prefix.",
            is_positional=True,
            metavar="REF...",
            exists="references",
        ),
    ] = None
    refs: Annotated[
        Path | None,
        Opt(
            "References, as other commands name them: REF.",
            exists="references",
            excludes=("references",),
        ),
    ] = None
    metric: Metrics = None
    scores: OutsideScores = None
    nbest: Annotated[bool, Opt("HYP is an n-best list: score one of each.")] = False
    rank: Annotated[
        int | None, Opt("With --nbest, the rank to score [1].", minimum=1, excludes=("oracle",))
    ] = None
    oracle: Annotated[bool, Opt("With --nbest, score the greedy corpus oracle.")] = False
    ids: SentenceIdsOfLines = None
    samples: Annotated[int, Opt("Bootstrap samples for 95 % intervals; 0 for none.", minimum=0)] = (
        1000
    )
    seed: Seed = 1
    sentences: Annotated[bool, Opt("Print sentence scores too, tab-separated.")] = False
    errors: Errors = None
    percent: Percent = False
    json: Json = False
    quiet: Quiet = False
    settings: Annotated[ListSettings, list_settings(_UNUSED)] = NO_SETTINGS


@dataclass(frozen=True)
class CompareCommand:
    """Test whether systems differ from the first by more than chance.

    Several files of one system are runs with different optimizer seeds. A working directory stands
    for translations of the tuning set, one for each of its runs: those decoded with the weights of
    the result, or else, with a note, the last ones. --decode makes the missing ones.

    p(AR) is from approximate randomization (Riezler & Maxwell 2005), stratified for several runs
    (Clark et al. 2011). p(boot) and the 95 % interval of the difference are from the paired
    bootstrap, and wins is the share of its samples in which the system is better (Koehn 2004); all
    three are for systems of one run each. s_sel is the standard deviation over texts drawn from
    this one, s_opt that over the runs. For error rates (TER, WER, CER, MER, PER, CDER), less is
    better.

    --scores adds a metric that another program computed, such as COMET: one file for each
    translation, in their order. NAME=FILE,...:error is an error rate. --score-command adds one that
    a command computes now.

    --analysis and --html show how the systems differ, after compare-mt (Neubig et al. 2019). The
    first metric scores single sentences.

    Examples: mosesplug compare base=b1.en,b2.en,b3.en new=n1.en,n2.en,n3.en --refs test.en;
    mosesplug compare b.en n.en --scores COMET=b.comet,n.comet
    """

    systems: Annotated[
        list[str],
        Opt(
            "The baseline first: FILE,... or NAME=FILE,... or a working directory.",
            is_positional=True,
            metavar="SYSTEM...",
        ),
    ]
    refs: References = None
    metric: Metrics = None
    scores: Annotated[
        list[str] | None,
        Opt(
            "Scores from outside: a file a system, a number a sentence.",
            metavar="NAME=FILE,...",
            exists="scores",
        ),
    ] = None
    ids: SentenceIdsOfLines = None
    decode: Annotated[bool, Opt("Decode tuning sets of runs with the result's weights.")] = False
    samples: Annotated[int, Opt("Bootstrap samples for intervals and p(boot).", minimum=1)] = 1000
    trials: Annotated[int, Opt("Trials of approximate randomization.", minimum=1)] = 10_000
    seed: Seed = 1
    errors: Errors = None
    percent: Percent = False
    json: Json = False
    analysis: Annotated[bool, Opt("Analyze words, sentences, n-grams and examples.")] = False
    html: Annotated[
        Path | None, Opt("Write the analysis as an HTML page.", metavar="FILE", is_output=True)
    ] = None
    frequency_text: Annotated[
        Path | None,
        Opt(
            "Text, or word<TAB>count, for word frequencies [the references].",
            metavar="FILE",
            requires=("refs", "analysis or html"),
        ),
    ] = None
    source: Annotated[
        Path | None, Opt("The source sentences, for the analysis and --score-command.")
    ] = None
    ngrams: Annotated[int, Opt("N-grams in each table.", minimum=0, metavar="N")] = 10
    examples: Annotated[int, Opt("Examples of each kind.", minimum=0, metavar="N")] = 5
    quiet: Quiet = False
    score_commands: Annotated[
        ScoreCommands,
        NestedSettings(list_options(ScoreCommands), make_score_commands, has_panels=False),
    ] = field(default_factory=ScoreCommands)


@dataclass(frozen=True)
class CheckCommand:
    """Check a tuning set and its lists before tuning.

    Lengths, empty and repeated lines, lines that are no translation, markup, blanks, case and
    tokenization, words that the phrase table lacks, sentences that are in other texts, too, and
    the number of features.

    Example: mosesplug check dev.src dev.ref --nbest run1.best100.out.gz --phrase-table phrases.gz
    """

    source: Annotated[
        Path,
        Opt("The source of the tuning set, a sentence a line.", is_positional=True, metavar="SRC"),
    ]
    references: Annotated[
        Path,
        Opt(
            "Its references: a file, or a prefix of several.",
            is_positional=True,
            metavar="REFS",
            exists="references",
        ),
    ]
    nbest: Annotated[
        list[Path] | None, Opt("An n-best list of SRC; repeatable.", metavar="LIST")
    ] = None
    phrase_table: Annotated[
        Path | None, Opt("Moses' phrase table, as text or compressed.", metavar="FILE")
    ] = None
    train: Annotated[Path | None, Opt("The source side of the training text.", metavar="FILE")] = (
        None
    )
    test: Annotated[Path | None, Opt("The source side of a test set.", metavar="FILE")] = None
    metric: Annotated[
        str,
        Opt(
            "The metric to tune for, which reads the texts.",
            metavar="NAME",
            complete=complete_metrics,
        ),
    ] = "BLEU"
    metric_settings: MetricSettings = ""
    strict: Annotated[bool, Opt("End with an error if there is a warning.")] = False
    json: Json = False
