"""Options of commands that read or maintain stores; imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from mosesplug.cli.inspect.list_options import list_settings
from mosesplug.cli.shared.commands import NestedSettings
from mosesplug.cli.shared.completion import complete_metrics, offer
from mosesplug.cli.shared.parameters import (
    THREADS,
    Hypothesis,
    IterationOption,
    Json,
    OtherHypothesis,
    Quiet,
    References,
    SentenceId,
    SentenceIdsOfLines,
    Source,
    Store,
    StoreWeights,
    Threads,
)
from mosesplug.options import Opt, list_options, same_as
from mosesplug.settings.lists import NO_SETTINGS, ListSettings
from mosesplug.settings.report import ReportSettings
from mosesplug.settings.scores.commands import ScoreCommands, make_score_commands

EXPORT_FORMATS = ("nbest", "jsonl", "tsv", "csv", "extractor", "npz", "parquet")
MAX_DIGITS = 9


@dataclass(frozen=True)
class NbestLsCommand:
    """List the iterations of a store: their lists, size and scores.

    The date is when the lists were stored, in local time (UTC with --json). The oracle of all lists
    so far is found by a greedy search for the corpus, and its score is kept in the store. Change is
    the largest difference between the weights that an iteration was decoded with and those that it
    found, whose score in the merged lists follows.

    Example: mosesplug nbest ls tuning
    """

    store: Store
    oracle: Annotated[bool, Opt("Score the oracle, which reads all lists once.")] = True
    json: Json = False


@dataclass(frozen=True)
class NbestGrepCommand:
    """Print every text in which a pattern occurs.

    Columns: sentence, field, number, text. Hypotheses are the distinct texts of
    all iterations. Searching source and reference requires
    --source and --refs. The exit code is 1 if there is no hit, as with grep.

    Example: mosesplug nbest grep tuning 'house|home' --in hypothesis
    """

    store: Store
    pattern: Annotated[
        str, Opt("A regular expression of Python.", is_positional=True, metavar="PATTERN")
    ]
    fields: Annotated[
        str | None,
        Opt(
            "Fields to search: source, reference, hypothesis, feature [all known].",
            name="in",
            metavar="FIELD,...",
        ),
    ] = None
    ignore_case: Annotated[bool, Opt("Ignore the case of ASCII letters.", short="i")] = False
    most: Annotated[int | None, Opt("Stop after this number of hits.", name="max", minimum=1)] = (
        None
    )
    source: Source = None
    refs: References = None
    ids: SentenceIdsOfLines = None
    json: Json = False


@dataclass(frozen=True)
class NbestStatsCommand:
    """Print statistics of features, lists and oracles.

    Features are measured over the distinct hypotheses: spread is the mean standard deviation in a
    sentence, correlation that with the sentence score (BLEU+1 for BLEU), in a sentence. Lists are
    those of the iteration, or of the last. The last table shows the score of the greedy corpus
    oracle if only the first hypotheses of each list are allowed.

    Example: mosesplug nbest stats tuning
    """

    store: Store
    iteration: IterationOption = "all"
    json: Json = False


@dataclass(frozen=True)
class NbestShowCommand:
    """Show the hypotheses of one sentence with their scores and roles.

    Roles are 1-best, oracle, hope and fear. Hope and fear have the largest sum and difference of
    model score and metric, at weights divided by their L1 norm. Hypotheses with a role are shown
    even below --top. With --refs, words on a terminal are colored by the longest matching n-gram.

    Example: mosesplug nbest show tuning 7 --refs dev.en --source dev.de --features
    """

    store: Store
    sentence: SentenceId
    iteration: IterationOption = "all"
    top: Annotated[int, Opt("Number of hypotheses.", minimum=1)] = 10
    sort: Annotated[str, Opt("Sort by this score, the largest first.", metavar="model|metric")] = (
        "model"
    )
    weights: StoreWeights = None
    features: Annotated[bool, Opt("Show weight times value of each feature.")] = False
    source: Source = None
    refs: References = None
    ids: SentenceIdsOfLines = None
    json: Json = False


@dataclass(frozen=True)
class NbestDiffCommand:
    """Compare two hypotheses of a sentence, two weight vectors, or two iterations.

    mosesplug weights why explains the tables of two hypotheses.

    The 1-best of an iteration (--iterations 3 4) is the decoder's own translation, the first of its
    list. Two weight vectors (--weights A --weights B) choose from the same lists. For each feature,
    the lead is the sum of weight times difference of values over the sentences whose 1-best
    changed, at the weights of A and B. Its swing is what the changed weight adds to the lead; the
    last columns count the sentences in which it has the largest swing.

    Example: mosesplug nbest diff tuning 7 1-best oracle; mosesplug nbest diff tuning --weights
    tuning:1 --weights tuning; mosesplug nbest diff tuning --iterations 3 4 --refs dev.en
    """

    store: Store
    sentence: Annotated[
        str | None,
        Opt("A sentence id, or its number from 0.", is_positional=True, metavar="SENTENCE"),
    ] = None
    first: Hypothesis = None
    second: OtherHypothesis = None
    iterations: Annotated[
        tuple[int, int] | None, Opt("Compare two iterations instead.", metavar="A B")
    ] = None
    iteration: IterationOption = "all"
    weights: Annotated[
        list[str] | None,
        Opt(
            "Weights of the model score [the run's result]; twice: compare both.",
            metavar="FILE|RUN",
            exists="weights",
        ),
    ] = None
    source: Source = None
    refs: References = None
    ids: SentenceIdsOfLines = None
    top: Annotated[
        int,
        Opt("Most sentences to show that gained, that lost, and whose score stayed.", minimum=0),
    ] = 5
    json: Json = False


@dataclass(frozen=True)
class NbestExportCommand:
    """Write the lists of one iteration, or all merged lists.

    nbest is the format of Moses, npz has NumPy arrays. Sentence ids that are texts are written as
    they were imported. The model scores of merged n-best lists are those of the run's result.
    Tables (tsv, csv) have the id, the text and dense features; jsonl also sparse features and the
    model score. The extractor files are FILE.features.dat and FILE.scores.dat. Parquet needs
    pyarrow: install mosesplug[frames].

    Example: mosesplug nbest export tuning --iteration 3 -o list3.gz
    """

    store: Store
    output: Annotated[
        Path,
        Opt(
            "The output (.gz: compressed), or its prefix.",
            short="o",
            metavar="FILE",
            is_output=True,
        ),
    ]
    layout: Annotated[
        str | None,
        Opt(
            f"{', '.join(EXPORT_FORMATS)} [by the name of FILE, or nbest].",
            name="format",
            metavar="NAME",
            complete=offer(EXPORT_FORMATS),
        ),
    ] = None
    iteration: IterationOption = "all"
    sentence: Annotated[list[str] | None, Opt("Export this sentence only; may be repeated.")] = None
    digits: Annotated[
        int, Opt("Digits of n-best numbers: 6 as Moses, 9 exact.", minimum=1, maximum=MAX_DIGITS)
    ] = MAX_DIGITS
    quiet: Quiet = False


@dataclass(frozen=True)
class NbestImportCommand:
    """Create a store of n-best lists, to inspect them.

    Weights and results of a working directory of mert-moses.pl are imported as well. The weights
    of other lists are unknown and shown as 0. With --scores, the store holds these statistics
    instead of those of a metric of texts.

    Example: mosesplug nbest import mert-work old.lmdb --refs dev.en --source dev.de
    """

    paths: Annotated[
        list[Path],
        Opt(
            "One n-best file an iteration, or a working directory; the new store.",
            is_positional=True,
            metavar="FILE... STORE",
            exists=("path", ""),
        ),
    ]
    refs: References = None
    source: Source = None
    metric: Annotated[
        str | None,
        Opt(
            "The metric: BLEU, TER, ... [the first of --scores, or BLEU]", complete=complete_metrics
        ),
    ] = None
    metric_settings: Annotated[str, Opt("Metric settings, as reflen:closest,case:true.")] = ""
    threads: Threads = THREADS
    quiet: Quiet = False
    settings: Annotated[ListSettings, list_settings(("templates", "source"))] = NO_SETTINGS


@dataclass(frozen=True)
class NbestVerifyCommand:
    """Verify every record; the exit code is 1 if one is damaged.

    All pages of the file are checked. Records are compared with their checksums (early versions
    wrote none) and decoded: every hypothesis that a list refers to is looked up, and all values
    must be numbers.

    Example: mosesplug nbest verify tuning
    """

    store: Store
    json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True)
class NbestCompactCommand:
    """Replace a store by a copy of itself without free pages.

    No other program may have it open when the copy is complete.

    Example: mosesplug nbest compact tuning
    """

    store: Store


@dataclass(frozen=True)
class NbestCopyCommand:
    """Copy a store without free pages, even during a run.

    Example: mosesplug nbest copy tuning /backup/tuning.lmdb
    """

    store: Store
    target: Annotated[
        Path, Opt("The new store.", is_positional=True, metavar="DIR", is_output=True)
    ]


@dataclass(frozen=True)
class NbestDropCommand:
    """Remove the newest iteration; a resumed run decodes it again.

    finished_step.txt beside the store is set back, and summary.json is removed. moses.ini stays
    until a resumed run writes it again. Older iterations cannot be dropped, since newer ones refer
    to their hypotheses.

    Example: mosesplug nbest drop tuning 7
    """

    store: Store
    iteration: Annotated[
        int,
        Opt(
            "The newest iteration of the store.", is_positional=True, metavar="ITERATION", minimum=1
        ),
    ]


@dataclass(frozen=True)
class LineCommand:
    """Print score and changed 1-best hypotheses along a line.

    Scores are exact: the 1-best hypotheses are constant between thresholds, and a row shows the
    best interval of its part. Weights have an L1 norm of 1.

    Example: mosesplug line tuning --direction LM0
    """

    store: Store
    direction: Annotated[
        str,
        Opt("A feature to change, or from iteration N's weights to M's.", metavar="FEATURE|N:M"),
    ]
    iteration: IterationOption = "all"
    weights: StoreWeights = None
    low: Annotated[float | None, Opt("Least weight or step [around the start].", name="from")] = (
        None
    )
    high: Annotated[float | None, Opt("Greatest weight or step [around the start].", name="to")] = (
        None
    )
    at: Annotated[
        float | None, Opt("Show the changes up to this position [the best one].", metavar="X")
    ] = None
    sentences: Annotated[int, Opt("Number of changes to show.", minimum=0)] = 10
    png: Annotated[
        Path | None, Opt("Draw the line; needs mosesplug[report].", metavar="FILE", is_output=True)
    ] = None
    json: Json = False


@dataclass(frozen=True)
class ReportCommand:
    """Write runs as one HTML page, to read and to explore.

    The page needs no network. In a browser, weights can be moved: scores and translations of the
    stored lists follow. Several runs are compared. Printed, it is a report.

    Figures: scores, weights, features, surfaces, growth, coverage, times, lattice, envelope. They
    need matplotlib: install mosesplug[report]. The store is only read; a run may be in progress.

    Examples: mosesplug report tuning --source dev.de --refs dev.en -o report.html; mosesplug report
    mira mert --refs dev.en
    """

    stores: Annotated[
        list[Path],
        Opt(
            "Working directories, or the stores in them.",
            is_positional=True,
            metavar="STORE...",
        ),
    ]
    output: Annotated[
        Path | None, Opt("The page [report.html].", short="o", metavar="FILE", is_output=True)
    ] = None
    png: Annotated[
        str | None, Opt("Write this figure as PNG instead [FIGURE.png].", metavar="FIGURE")
    ] = None
    refs: References = None
    source: Source = None
    ids: SentenceIdsOfLines = None
    examples: Annotated[int, same_as(ReportSettings, "examples")] = ReportSettings.examples
    sentence: Annotated[int | None, Opt("The sentence whose search graph is drawn.", minimum=0)] = (
        None
    )
    dpi: Annotated[int, same_as(ReportSettings, "dpi")] = ReportSettings.dpi
    report_metric: Annotated[
        list[str] | None,
        Opt(
            "Show a metric that was not optimized; repeatable.",
            metavar="NAME",
            complete=complete_metrics,
        ),
    ] = None
    title: Annotated[str | None, Opt("Title of the page [the store's path].")] = None
    sentences: Annotated[int | None, same_as(ReportSettings, "sentences")] = (
        ReportSettings.sentences
    )
    max_size: Annotated[float, same_as(ReportSettings, "max-size")] = ReportSettings.max_size
    all_hypotheses: Annotated[
        bool, Opt("Hold all hypotheses, whatever their size.", excludes=("max-size",))
    ] = False
    score_commands: Annotated[
        ScoreCommands,
        NestedSettings(list_options(ScoreCommands), make_score_commands, has_panels=False),
    ] = field(default_factory=ScoreCommands)
    quiet: Quiet = False
