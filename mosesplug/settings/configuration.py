"""The settings of a run, each declared once, as immutable values.

They say what to tune, and how. Command lines, settings files, documentation and checks come from
the metadata of these fields (``settings.declare``). Fields marked by ``parts`` hold objects that
``settings.build`` makes of the settings in another class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mosesplug.errors import UsageError
from mosesplug.settings.declare import describe, group, parts, same_as, setting
from mosesplug.settings.decoding import DecodingSettings
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.online import HeldOutSet, OnlineSettings
from mosesplug.settings.optimizer import OptimizerSettings

if TYPE_CHECKING:
    from mosesplug.metrics import Metric
else:  # loading the metrics takes a second, which --help does not need
    Metric = Any

__all__ = [
    "Configuration",
    "OutputSettings",
    "Repeats",
    "RunPlan",
    "Select",
    "SelectRun",
]

Select = Literal["best-dev", "last", "average", "best-heldout"]
SelectRun = Literal["median", "best-heldout", "average"]
"""Weights of the run with the median score, of the best run on the held-out set, or the mean."""


@dataclass(frozen=True)
class _MetricSettings:
    """Settings of ``Configuration.metric``."""

    metric: str = setting(
        "BLEU",
        help="Metric, or a weighted sum: BLEU,TER",
        panel="Learning",
        metavar="NAME",
        details="BLEU, CDER, CER, CHRF, MER, PER, TER, TER-SACREBLEU or WER; or several with "
        "commas between them, for their weighted sum.",
    )
    metric_settings: str = setting(
        "",
        help="Settings of the metric: case:false,...",
        panel="Learning",
        metavar="N:V,...",
        details="case:true|false for every metric. tokenize:none|13a|intl|zh|char|flores101|"
        "flores200|ja-mecab|ko-mecab|tercom|tercom-asian for every metric but CHRF and CER: "
        "tokenizers of sacrebleu; none takes the text as it is. "
        "normalize:lower|punct|nfkc or several as lower+punct for error rates: lower-case all "
        "letters, delete punctuation, Unicode NFKC. "
        "reflen:closest|shortest|average for BLEU; refs:moses|best for WER and CDER; "
        "blanks:keep|remove for CER; "
        "beta:NUMBER and smooth:NUMBER for CHRF; weights:0.6+0.4 for a weighted sum.",
    )


@dataclass(frozen=True)
class _Selection:
    """Settings of ``Configuration.select``."""

    select: Literal["best-dev", "last", "average", "best-heldout", "median"] | None = setting(
        None,
        help="best-dev, last, average or best-heldout weights",
        panel="Learning",
        metavar="HOW",
        can_be_abbreviated=True,
        note="default: best-heldout with --heldout; else last; with --online what the"
        " learner's averaging says",
        details="best-dev: the decoded weights with the best 1-best score on the tuning set. "
        "last: those of the last iteration. average: the mean over all iterations, with "
        "--online over all updates. best-heldout: the best on the held-out set. Default: "
        "best-heldout with --heldout; with --online what the learner's averaging says; average "
        "with mert and kbmira on n-best lists; else best-dev (mert-moses: last). With --runs "
        "it chooses among the runs: median (default), best-heldout or average.",
    )
    last: bool = setting(
        False,
        help="The same as --select last",
        panel="Learning",
        is_saved=False,
        details="With --runs, the same as --select-run last.",
    )
    select_run: Select | None = setting(
        None,
        help="Weights of each run, as --select for one",
        panel="Repeats",
        metavar="HOW",
        requires=("runs",),
        details="best-dev, last, average or best-heldout, as --select for a single run, with the "
        "same default.",
    )


@dataclass(frozen=True)
class _EarlierRun:
    """Settings of ``Configuration.existing``."""

    resume: bool = setting(
        False,
        name="continue",
        help="Resume after the last finished iteration",
        panel="Output",
        is_saved=False,
        script="continue",
        note="with any algorithm; an unfinished run of mert-moses.pl itself is taken over too",
    )
    overwrite: bool = setting(
        False,
        help="Replace an earlier run in the directory",
        panel="Output",
        is_saved=False,
        excludes=("continue",),
        details="mert-moses always does that, unless --continue is given.",
    )


@dataclass(frozen=True)
class Configuration:
    """One tuning run.

    Attributes:
        input: the source sentences; None only if an ``OutsideDecoder`` has them.
        metric: what is optimized.
        existing: what to do with an earlier run in the working directory: ``continue`` it,
            ``overwrite`` it, or ``refuse`` to touch it.
        select: which weights are the result. None: ``best-heldout`` if there is a held-out set;
            else ``last``, or online the learner's ``averaging``.
        maximum_iterations: 0 for no limit. With --online, the learner's epochs are a limit, too.
    """

    input: Path | None = field(
        metadata=describe(
            help="Source sentences of the tuning set",
            panel="Data",
            is_argument=True,
            script="input",
            note="or the first of four arguments",
            exists="file",
            what="the input",
        )
    )
    references: Path = field(
        metadata=describe(
            name="refs",
            help="References: a file, or the prefix of several",
            panel="Data",
            is_argument=True,
            script="refs",
            note="or the second argument",
            exists="references",
            details="REFS, or REFS0, REFS1, ..., or REFS.ref0, REFS.ref1, ...",
        )
    )
    config: Path = field(
        metadata=describe(
            help="The decoder's moses.ini with starting weights",
            panel="Data",
            is_argument=True,
            script="config",
            note="or the fourth argument",
            exists="file",
            what="the configuration",
            details="With --decode-command, a file of weights in any format that has names.",
        )
    )
    working_directory: Path = field(
        metadata=describe(
            name="working-dir",
            help="Directory of all files of the run",
            panel="Data",
            metavar="DIR",
            script="working-dir",
            script_default="mert-work",
            tune_default="tuning",
            details="It is the decoder's current directory.",
        )
    )
    metric: Metric = field(metadata=parts(_MetricSettings))
    decoding: DecodingSettings
    optimization: OptimizerSettings = field(default_factory=OptimizerSettings)
    maximum_iterations: int = setting(
        25,
        name="max-iterations",
        help="Most iterations; 0: no limit",
        panel="Learning",
        metavar="N",
        minimum=0,
        script="maximum-iterations",
        details="With --online, the default is the learner's number of epochs.",
    )
    minimum_change: float = setting(
        1e-5,
        name="min-change",
        help="Stop if no weight moves this much",
        panel="Learning",
        metavar="X",
        minimum=0.0,
        details="See the column change in the table of iterations.",
    )
    stop_after: int = setting(
        0,
        help="Stop after N decodings without a gain; 0: off",
        panel="Learning",
        metavar="N",
        minimum=0,
        excludes=("online",),
        can_be_abbreviated=True,
        tune_default=3,
        script_default="0",
        note="the script stops when no weight changes",
        details="A decoding of the tuning set scores higher if its score exceeds the last one "
        "that did by more than the standard error of their difference. Default: 3; with "
        "--online, --patience and in mert-moses, 0.",
    )
    select: Select | None = field(default=None, metadata=parts(_Selection))
    existing: Literal["refuse", "overwrite", "continue"] = field(
        default="refuse", metadata=parts(_EarlierRun)
    )
    skip_decoder: bool = setting(
        False,
        help="Use the first n-best list in the directory",
        panel="Decoder",
        script="skip-decoder",
    )
    keep_extractor_files: bool = setting(
        False,
        help="Write what mert-moses.pl --continue needs, too",
        panel="Output",
        can_be_abbreviated=True,
        details="runN.features.dat, runN.scores.dat, runN.mert.log and runN.mert.out.",
    )
    online: OnlineSettings | None = field(
        default=None,
        metadata=group(
            describe(
                help="Learn while decoding, a mini-batch at a time",
                panel="Online",
                can_be_abbreviated=True,
                note="for online learners only; runN.best100.out.gz is not written, the lists are"
                " in the store",
                details="Each mini-batch is decoded with the current weights, then the learner "
                "updates them. For online learners only; the n-best lists are kept in the store "
                "only.",
            )
        ),
    )
    held_out: HeldOutSet | None = field(default=None, metadata=group(on="heldout"))
    ids: bool | None = field(
        default=None,
        metadata=same_as(
            ListSettings,
            "ids",
            details="The ids are removed: sentences are the lines of the input. What looks like "
            "ids is an error without this option. --no-ids takes first words as words.",
        ),
    )
    sparse_weights: Path | None = setting(
        None,
        help="Starting weights of sparse features",
        panel="Data",
        metavar="FILE",
        exists="file",
        what="the sparse weights",
        can_be_abbreviated=True,
        details="A name and a number on each line. They are added to those that CONFIG names.",
    )
    domains: Path | None = setting(
        None,
        help="Weights for each domain; FILE labels sentences",
        panel="Learning",
        metavar="FILE",
        exists="file",
        what="the file of domains",
        can_be_abbreviated=True,
        excludes=(
            *("online", "forest", "heldout", "runs", "decode-command", "skip-decoder"),
            *("keep-extractor-files",),
        ),
        details="A line for each source sentence. Each domain gets the shared weights plus its "
        "own deviations (feature augmentation, Daume 2007), and its sentences are decoded with "
        "them. moses.ini has the shared weights, domain.LABEL.moses.ini those of a domain.",
    )
    start_from: Path | None = setting(
        None,
        help="Start from the result of the run in DIR",
        panel="Data",
        metavar="DIR",
        exists="path",
        can_be_abbreviated=True,
    )
    strict: bool = setting(
        False,
        help="End with an error where else there is a warning",
        panel="Output",
        can_be_abbreviated=True,
        details="No weights are written if one weight dominates all others, a score falls, "
        "references are in another language, tokenized differently or otherwise not what they "
        "seem, lists have one hypothesis each, or features never vary.",
    )
    max_drop: float = setting(
        0.05,
        help="Accepted drop of the score below the first",
        panel="Output",
        metavar="X",
        minimum=0.0,
        can_be_abbreviated=True,
    )

    @property
    def source(self) -> Path:
        """The source sentences.

        Raises:
            UsageError: an ``OutsideDecoder`` has no such settings.
        """
        if self.input is None:
            raise UsageError("this needs the source sentences: give --input")
        return self.input


@dataclass(frozen=True)
class Repeats:
    """Several runs that differ in their seed only."""

    runs: int | None = setting(
        None,
        help="Tune N times, with seeds S, S+1, ...",
        panel="Repeats",
        metavar="N",
        minimum=2,
        details="Each run has its own directory (run.1, run.2, ...), which is the decoder's "
        "current directory then. Prints how much the runs differ (Clark et al. 2011). "
        "--select chooses the weights of the result.",
    )


@dataclass(frozen=True)
class OutputSettings:
    """What is shown while it runs."""

    quiet: bool = setting(
        False, help="Print errors only", panel="Output", is_saved=False, can_be_abbreviated=True
    )
    verbose: bool = setting(
        False,
        help="Show each command that is run",
        panel="Output",
        is_saved=False,
        script="verbose",
    )


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
