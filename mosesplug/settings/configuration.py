"""The settings of a run, each declared once, as immutable values.

They say what to tune, and how. Command lines, settings files, documentation and checks come from
the metadata of these fields (``mosesplug.options``). Fields marked by ``parts`` hold objects that
``settings.build`` makes of the settings in another class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mosesplug.errors import UsageError
from mosesplug.options import Opt, OptionGroup, Parts, same_as
from mosesplug.settings.checks import check_fields
from mosesplug.settings.decoding import DecodingSettings
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.online import HeldOutSet, Monitor, OnlineSettings, parse_monitors
from mosesplug.settings.optimizer import OptimizerSettings
from mosesplug.settings.reported import ReportedMetric
from mosesplug.settings.scores.commands import ScoreCommands
from mosesplug.settings.sentences.weights import SentenceWeights, parse_sentence_weights

if TYPE_CHECKING:
    from mosesplug.decoders.description import DecoderDescription
    from mosesplug.metrics import Metric
else:  # loading the metrics takes a second, which --help does not need
    Metric = Any

Select = Literal["best-dev", "last", "average", "best-heldout"]
SelectRun = Literal["median", "best-heldout", "average"]
"""Weights of the run with the median score, of the best run on the held-out set, or the mean."""


@dataclass(frozen=True)
class _MetricSettings:
    """Settings of ``Configuration.metric``."""

    metric: Annotated[
        str,
        Opt(
            "Metric, or a weighted sum: BLEU,TER",
            "Learning",
            metavar="NAME",
            details="BLEU, CDER, CER, CHRF, GLEU, MER, METEOR, PER, TER, TER-SACREBLEU or WER; or "
            "several with commas between them, for their weighted sum.",
        ),
    ] = "BLEU"
    metric_settings: Annotated[
        str,
        Opt(
            "Settings of the metric: case:false,...",
            "Learning",
            metavar="N:V,...",
            details="case:true|false for every metric. "
            "tokenize:none|13a|intl|zh|char|flores101|"
            "flores200|ja-mecab|ko-mecab|tercom|tercom-asian "
            "for every metric but CHRF and CER: tokenizers of sacrebleu; none takes the text as "
            "it is. normalize:lower|punct|nfkc or several as lower+punct for error rates: "
            "lower-case all letters, delete punctuation, Unicode NFKC. "
            "reflen:closest|shortest|average for BLEU; refs:moses|best for WER and CDER; "
            "blanks:keep|remove for CER; beta:NUMBER, smooth:NUMBER and words:0..4 for CHRF; "
            "alpha, beta, gamma, exact and stem:NUMBER and stems:none|LANGUAGE for METEOR; "
            "weights:0.6+0.4 for a weighted sum.",
        ),
    ] = ""


@dataclass(frozen=True)
class _Selection:
    """Settings of ``Configuration.select``."""

    select: Annotated[
        Literal["best-dev", "last", "average", "best-heldout", "median"] | None,
        Opt(
            "best-dev, last, average or best-heldout weights",
            "Learning",
            metavar="HOW",
            can_be_abbreviated=True,
            note="default: best-heldout with --heldout; else last; with --online what the "
            "learner's averaging says",
            details="best-dev: the decoded weights with the best 1-best score on the tuning set. "
            "last: those of the last iteration. average: the mean over all iterations, with "
            "--online over all updates. best-heldout: the best on the held-out set. Default: "
            "best-heldout with --heldout; with --online what the learner's averaging says; "
            "average with mert and kbmira on n-best lists; else best-dev (mert-moses: last). With "
            "--runs it chooses among the runs: median (default), best-heldout or average.",
        ),
    ] = None
    last: Annotated[
        bool,
        Opt(
            "The same as --select last",
            "Learning",
            is_saved=False,
            details="With --runs, the same as --select-run last.",
        ),
    ] = False
    select_run: Annotated[
        Select | None,
        Opt(
            "Weights of each run, as --select for one",
            "Repeats",
            metavar="HOW",
            requires=("runs",),
            details="best-dev, last, average or best-heldout, as --select for a single run, with "
            "the same default.",
        ),
    ] = None


@dataclass(frozen=True)
class _EarlierRun:
    """Settings of ``Configuration.existing``."""

    resume: Annotated[
        bool,
        Opt(
            "Resume after the last finished iteration",
            "Output",
            name="continue",
            keyword="resume",
            is_saved=False,
            script="continue",
            note="with any algorithm; an unfinished run of mert-moses.pl itself is taken over too",
        ),
    ] = False
    overwrite: Annotated[
        bool,
        Opt(
            "Replace an earlier run in the directory",
            "Output",
            is_saved=False,
            excludes=("continue",),
            details="mert-moses always does that, unless --continue is given.",
        ),
    ] = False


@dataclass(frozen=True)
class Configuration:
    """One tuning run.

    Attributes:
        input: the source sentences; None only if an ``OutsideDecoder`` has them.
        existing: what to do with an earlier run in the working directory: ``continue`` it,
            ``overwrite`` it, or ``refuse`` to touch it.
        select: which weights are the result. None: ``best-heldout`` if there is a held-out set;
            else ``last``, or online the learner's ``averaging``.
        maximum_iterations: 0 for no limit. With --online, the learner's epochs are a limit, too.
    """

    input: Annotated[
        Path | None,
        Opt(
            "Source sentences of the tuning set",
            "Data",
            is_argument=True,
            script="input",
            note="or the first of four arguments",
            exists="file",
            what="the input",
        ),
    ]
    references: Annotated[
        Path,
        Opt(
            "References: a file, or the prefix of several",
            "Data",
            name="refs",
            keyword="references",
            is_argument=True,
            script="refs",
            note="or the second argument",
            exists="references",
            details="REFS, or REFS0, REFS1, ..., or REFS.ref0, REFS.ref1, ...",
        ),
    ]
    config: Annotated[
        Path,
        Opt(
            "The decoder's moses.ini with starting weights",
            "Data",
            is_argument=True,
            script="config",
            note="or the fourth argument",
            exists="file",
            what="the configuration",
            details="With --decode-command, a file of weights in any format that has names.",
        ),
    ]
    working_directory: Annotated[
        Path,
        Opt(
            "Directory of all files of the run",
            "Data",
            name="working-dir",
            metavar="DIR",
            script="working-dir",
            script_default="mert-work",
            tune_default="tuning",
            details="It is the decoder's current directory.",
        ),
    ]
    metric: Annotated[Metric, Parts(_MetricSettings)]
    decoding: DecodingSettings
    report_metrics: Annotated[
        tuple[ReportedMetric, ...],
        Opt(
            "Report a metric, never optimize it; repeatable",
            "Learning",
            name="report-metric",
            keyword="report_metrics",
            metavar="NAME",
            can_be_abbreviated=True,
            details="The decoder's 1-bests of each iteration, those of the held-out set and of "
            "monitors, and those of the result are scored by it, too. A weighted sum, settings as "
            "in 'CHRF[beta:3]', and the NAME of a --score-command, which then scores these 1-bests "
            "only. A continued run may report other metrics.",
        ),
    ] = ()
    optimization: OptimizerSettings = field(default_factory=OptimizerSettings)
    maximum_iterations: Annotated[
        int,
        Opt(
            "Most iterations; 0: no limit",
            "Learning",
            name="max-iterations",
            minimum=0,
            script="maximum-iterations",
            details="With --online, the default is the learner's number of epochs.",
        ),
    ] = 25
    minimum_change: Annotated[
        float,
        Opt(
            "Stop if no weight moves this much",
            "Learning",
            name="min-change",
            minimum=0.0,
            details="See the column change in the table of iterations.",
        ),
    ] = 1e-5
    stop_after: Annotated[
        int,
        Opt(
            "Stop after N decodings without a gain; 0: off",
            "Learning",
            minimum=0,
            excludes=("online",),
            can_be_abbreviated=True,
            tune_default=3,
            script_default="0",
            note="the script stops when no weight changes",
            details="A decoding of the tuning set scores higher if its score exceeds the last one "
            "that did by more than the standard error of their difference. Default: 3; with "
            "--online, --patience and in mert-moses, 0.",
        ),
    ] = 0
    select: Annotated[Select | None, Parts(_Selection)] = None
    existing: Annotated[Literal["refuse", "overwrite", "continue"], Parts(_EarlierRun)] = "refuse"
    skip_decoder: Annotated[
        bool, Opt("Use the first n-best list in the directory", "Decoder", script="skip-decoder")
    ] = False
    keep_extractor_files: Annotated[
        bool,
        Opt(
            "Write what mert-moses.pl --continue needs, too",
            "Output",
            can_be_abbreviated=True,
            details="runN.features.dat, runN.scores.dat, runN.mert.log and runN.mert.out.",
        ),
    ] = False
    online: Annotated[
        OnlineSettings | None,
        OptionGroup(
            Opt(
                "Learn while decoding, a mini-batch at a time",
                "Online",
                can_be_abbreviated=True,
                note="for online learners only; runN.best100.out.gz is not written, the lists are "
                "in the store",
                details="Each mini-batch is decoded with the current weights, then the learner "
                "updates them. For online learners only; the n-best lists are kept in the store "
                "only.",
            )
        ),
    ] = None
    held_out: Annotated[HeldOutSet | None, OptionGroup(on="heldout")] = None
    monitors: Annotated[
        tuple[Monitor, ...],
        Opt(
            "Set to score without selecting by it; repeatable",
            "Held-out",
            name="monitor",
            metavar="NAME=INPUT,REFS[,forest:DIR]",
            exists="monitor",
            parse=parse_monitors,
            note="translated with the held-out set, or after each iteration",
            details="Source sentences and references, as those of --heldout, translated with it "
            "and with the resulting weights. The scores are shown and stored under NAME. They "
            "neither select weights nor end the run. A continued run may have other monitors. "
            "With forest:DIR, search graphs of these sentences give the translations.",
        ),
    ] = ()
    ids: Annotated[
        bool | None,
        same_as(
            ListSettings,
            "ids",
            details="The ids are removed: sentences are the lines of the input. What looks like "
            "ids is an error without this option. --no-ids takes first words as words.",
        ),
    ] = None
    sparse_weights: Annotated[
        Path | None,
        Opt(
            "Starting weights of sparse features",
            "Data",
            exists="file",
            what="the sparse weights",
            can_be_abbreviated=True,
            details="A name and a number on each line. They are added to those that CONFIG names.",
        ),
    ] = None
    domains: Annotated[
        Path | None,
        Opt(
            "Weights for each domain; FILE labels sentences",
            "Learning",
            exists="file",
            what="the file of domains",
            can_be_abbreviated=True,
            excludes=(
                *("online", "forest", "heldout", "monitor", "runs", "decode-command"),
                *("skip-decoder", "keep-extractor-files"),
            ),
            details="A line for each source sentence. Each domain gets the shared weights plus "
            "its own deviations (feature augmentation, Daume 2007), and its sentences are decoded "
            "with them. moses.ini has the shared weights, domain.LABEL.moses.ini those of a "
            "domain.",
        ),
    ] = None
    sentence_weights: Annotated[
        Path | SentenceWeights | None,
        Opt(
            "Weights of sentences; FILE has one on each line",
            "Learning",
            exists="file",
            what="the file of weights of sentences",
            parse=parse_sentence_weights,
            can_be_abbreviated=True,
            details="A line for each source sentence. A sentence of weight 2 counts as two "
            "sentences, in the metric and in losses; one of weight 0 does not count. Printed "
            "scores of the tuning set are weighted, too; those of held-out text are not.",
        ),
    ] = None
    start_from: Annotated[
        Path | None,
        Opt(
            "Start from the result of the run in DIR",
            "Data",
            metavar="DIR",
            exists="path",
            can_be_abbreviated=True,
        ),
    ] = None
    score_commands: ScoreCommands = field(default_factory=ScoreCommands)
    score_budget: Annotated[
        int | None,
        Opt(
            "Score at most N new texts of a sentence in an iteration",
            "Learning",
            minimum=1,
            can_be_abbreviated=True,
            excludes=("online", "forest", "domains"),
            excludes_because="The budget chooses hypotheses of n-best lists by the weights of an "
            "iteration. An online learner changes them with each mini-batch, search graphs have no "
            "lists, and each domain has its own weights",
            details="For a --score-command that is too slow for all hypotheses: it scores at most "
            "N new texts of each sentence and iteration, first the decoder's 1-best, then those "
            "that win along an axis or between the weights of two decodings, then by rank. "
            "Hypotheses that are not scored do not take part: they are neither stored nor learned "
            "from. The output says how many are scored, and how many of the others the new weights "
            "choose. After the last iteration, those that the result chooses are scored, too.",
        ),
    ] = None
    strict: Annotated[
        bool,
        Opt(
            "End with an error where else there is a warning",
            "Output",
            can_be_abbreviated=True,
            details="No weights are written if one weight dominates all others, a score falls, "
            "references are in another language, tokenized differently or otherwise not what they "
            "seem, lists have one hypothesis each, or features never vary.",
        ),
    ] = False
    max_drop: Annotated[
        float,
        Opt(
            "Accepted drop of the score below the first",
            "Output",
            minimum=0.0,
            can_be_abbreviated=True,
        ),
    ] = 0.05

    def __post_init__(self) -> None:
        check_fields(self)

    def decoder_of(self, scored_set: HeldOutSet | Monitor) -> DecoderDescription:
        """Return the decoder of the held-out set or of a monitor.

        Monitors that have no search graphs are translated by the program of the held-out set.
        """
        if scored_set.decoder is not None:
            return scored_set.decoder
        program = None if self.held_out is None else self.held_out.decoder
        if program is None or program.stored_graphs is not None:
            return self.decoding.decoder
        return program

    @property
    def keeps_lists(self) -> bool:
        """Whether the store keeps the n-best lists of all iterations."""
        return self.online is None or self.online.keep_lists

    @property
    def source_text(self) -> Path | None:
        """The source sentences, a line of text for each; None for other or unknown input."""
        return None if self.decoding.decoder.input_type else self.input

    @property
    def source(self) -> Path:
        """The source sentences.

        Raises:
            UsageError: an ``OutsideDecoder`` has no such settings.
        """
        if self.input is None:
            raise UsageError("this needs the source sentences: give {--input}")
        return self.input


@dataclass(frozen=True)
class Repeats:
    """Several runs that differ in their seed only."""

    runs: Annotated[
        int | None,
        Opt(
            "Tune N times, with seeds S, S+1, ...",
            "Repeats",
            minimum=2,
            details="Each run has its own directory (run.1, run.2, ...), which is the decoder's "
            "current directory then. Prints how much the runs differ (Clark et al. 2011). "
            "--select chooses the weights of the result.",
        ),
    ] = None


@dataclass(frozen=True)
class OutputSettings:
    """What is shown while it runs."""

    quiet: Annotated[
        bool, Opt("Print errors only", "Output", is_saved=False, can_be_abbreviated=True)
    ] = False
    verbose: Annotated[
        bool, Opt("Show each command that is run", "Output", is_saved=False, script="verbose")
    ] = False


@dataclass(frozen=True)
class RunPlan:
    """Everything that a command line or a settings file can ask of a tuning run.

    Attributes:
        select_run: whose weights the result of several runs has; None for the default.
    """

    configuration: Configuration
    repeats: Repeats = field(default_factory=Repeats)
    output: OutputSettings = field(default_factory=OutputSettings)
    select_run: SelectRun | None = None
