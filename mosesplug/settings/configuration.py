"""What to tune and how: the settings of a run, each declared once, as immutable values.

Command lines, settings files, documentation and checks come from the metadata of these fields
(``settings.declare``). Fields marked by ``parts`` hold objects that ``settings.build`` makes of the
settings in another class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mosesplug.decoders.moses import MosesDecoder
from mosesplug.settings.checks import check_fields
from mosesplug.settings.declare import group, parts, setting
from mosesplug.settings.sharding import Sharding

if TYPE_CHECKING:
    from mosesplug.metrics import Metric
else:  # loading the metrics takes a second, which --help does not need
    Metric = Any

__all__ = [
    "Configuration",
    "DecodingSettings",
    "GraphSettings",
    "HeldOutSet",
    "ModelFilter",
    "OnlineDecoder",
    "OnlineSettings",
    "OptimizerSettings",
    "OutputSettings",
    "Repeats",
    "RunPlan",
    "Select",
    "SelectRun",
]

OnlineDecoder = Literal["auto", "server", "process"]
Select = Literal["best-dev", "last", "average", "best-heldout"]
SelectRun = Literal["median", "best-heldout", "average"]
"""Weights of the run with the median score, of the best run on the held-out set, or the mean."""


@dataclass(frozen=True)
class _MetricSettings:
    """Settings of ``Configuration.metric``."""

    metric: str = field(
        default="BLEU",
        metadata=setting(
            help="Metric, or a weighted sum: BLEU,TER",
            panel="Learning",
            metavar="NAME",
            details="BLEU, CDER, CHRF, PER, TER, TER-SACREBLEU or WER; or several with commas "
            "between them, for their weighted sum.",
        ),
    )
    metric_settings: str = field(
        default="",
        metadata=setting(
            help="Settings of the metric: case:false,...",
            panel="Learning",
            metavar="NAME:VALUE,...",
            details="reflen:closest|shortest|average and case:true|false for BLEU; of a weighted "
            "sum also weights:0.6+0.4.",
        ),
    )


@dataclass(frozen=True)
class _DecoderSettings:
    """Settings of ``Decoding.decoder``."""

    decoder: str = field(
        metadata=setting(
            help="The decoder, or forest:DIR with search graphs",
            panel="Data",
            is_argument=True,
            script="decoder",
            note="or the third argument",
            details="moses, mosesplug-decoder, ...; or forest:DIR, where DIR is the working "
            "directory of a run with --forest, or holds search graphs that Moses wrote.",
        )
    )
    decoder_flags: str = field(
        default="",
        metadata=setting(
            help="More words for the decoder's command line",
            panel="Decoder",
            metavar="WORDS",
            script="decoder-flags",
        ),
    )
    decoder_timeout: float | None = field(
        default=None,
        metadata=setting(
            help="Kill a decoder that writes nothing this long",
            panel="Decoder",
            metavar="SECONDS",
            above=0.0,
            added=True,
            details="Loading the model counts. A server may take this long for a sentence "
            "(default: 600) or to load (default: 1800).",
        ),
    )
    input_type: int | None = field(
        default=None,
        metadata=setting(
            help="0 text, 1 confusion network, 2 lattice, 3 tree",
            panel="Decoder",
            metavar="N",
            script="inputtype",
            details="Passed to the decoder as -inputtype.",
        ),
    )


@dataclass(frozen=True)
class _HelperSettings:
    """Settings of Moses' helper scripts: of ``Decoding.decoder`` and ``Decoding.cache``."""

    jobs: int = field(
        default=1,
        metadata=setting(
            help="Decode in N jobs through moses-parallel.pl",
            panel="Decoder",
            metavar="N",
            script="jobs",
        ),
    )
    queue_flags: str = field(
        default="-hard",
        metadata=setting(
            help="Parameters of qsub, with --jobs",
            panel="Decoder",
            metavar="WORDS",
            script="queue-flags",
        ),
    )
    old_sge: bool = field(
        default=False,
        metadata=setting(
            help="Grid Engine before version 6.0, with --jobs",
            panel="Decoder",
            script="old-sge",
        ),
    )
    moses_parallel: Path | None = field(
        default=None,
        metadata=setting(
            help="Path of moses-parallel.pl, with --jobs",
            panel="Decoder",
            metavar="FILE",
            script="mosesparallelcmd",
        ),
    )
    qsub_wrapper: Path | None = field(
        default=None,
        metadata=setting(
            help="Path of qsub-wrapper.pl, with --jobs",
            panel="Decoder",
            metavar="FILE",
            script="qsubwrapper",
        ),
    )
    multi_moses: bool = field(
        default=False,
        metadata=setting(
            help="Run several decoders through multi_moses.py",
            panel="Decoder",
            script="multi-moses",
        ),
    )
    spe_symal: Path | None = field(
        default=None,
        metadata=setting(
            help="Word alignment for simulated post-editing",
            panel="Decoder",
            metavar="FILE",
            script="spe-symal",
            exists="file",
            what="the word alignment",
            details="Decodes through moses_sim_pe.py, with the first reference.",
        ),
    )
    cache_model: str | None = field(
        default=None,
        metadata=setting(
            help="Local directory to copy the model to",
            panel="Decoder",
            metavar="DIR",
            script="cache-model",
            note="without --jobs, the decoder uses the copy too (the script copies and forgets it)",
        ),
    )
    moses_scripts: Path | None = field(
        default=None,
        metadata=setting(
            help="Moses' scripts directory, for helper scripts",
            panel="Decoder",
            metavar="DIR",
            script="rootdir",
            note="else $SCRIPTS_ROOTDIR, else ../scripts beside the decoder's directory",
        ),
    )


@dataclass(frozen=True)
class _FilterSettings:
    """Settings of ``Decoding.filtering``."""

    filter_command: str | None = field(
        default=None,
        metadata=setting(
            help="Filter the model first: command and its options",
            panel="Decoder",
            metavar="COMMAND",
            script="filtercmd",
            details="filter-model-given-input.pl or a script with the same arguments.",
        ),
    )
    filter_file: Path | None = field(
        default=None,
        metadata=setting(
            help="Source sentences to filter for, if not INPUT",
            panel="Decoder",
            metavar="FILE",
            script="filterfile",
        ),
    )


@dataclass(frozen=True)
class ModelFilter:
    """Cutting the model down to the phrases of the input before tuning.

    Attributes:
        command: words of ``filter-model-given-input.pl`` with its own options; the target
            directory, the configuration and the input are put behind them.
        input: source sentences to filter for.
    """

    command: tuple[str, ...]
    input: Path


@dataclass(frozen=True)
class GraphSettings:
    """Search graphs from the decoder; the n-best lists are taken out of them."""

    edges: int = field(
        default=50,
        metadata=setting(
            name="forest-edges",
            help="Best edges kept per reference word; 0: all",
            panel="Decoder",
            metavar="N",
            minimum=0,
            added=True,
            note="as kbmira's --hg-prune",
            details="Keeps the edges of each search graph that lie on the best derivations by the "
            "weights of the decoding: this many for each word of the shortest reference.",
        ),
    )
    every: int = field(
        default=1,
        metadata=setting(
            name="redecode-every",
            help="Decode only in iterations 1, N+1, 2N+1, ...",
            panel="Decoder",
            metavar="N",
            minimum=1,
            added=True,
            details="The other iterations take their n-best lists out of all search graphs so far, "
            "with their own weights. With --online, the graphs are made before epochs 1, N+1, ..., "
            "and decode all mini-batches.",
        ),
    )

    def __post_init__(self) -> None:
        check_fields(self)

    def __str__(self) -> str:
        # Stores keep this text, whatever the class is called.
        return f"Graphs(edges={self.edges}, every={self.every})"


@dataclass(frozen=True)
class DecodingSettings:
    """How n-best lists are made.

    Attributes:
        decoder: the program and how to call it; a name only if search graphs take its place.
        filtering: filter the model first, or None.
        cache: words of a command that copies the model to a local disk and prints the path of
            the copy's configuration, or None; the configuration is put after the first word.
        forest: place of search graphs that take the decoder's place, or None: the working
            directory of a run that stored them, its store, or a directory of Moses' files.
    """

    decoder: MosesDecoder = field(metadata=parts(_DecoderSettings))
    nbest: int = field(
        default=100,
        metadata=setting(
            help="Length of the n-best lists",
            panel="Decoder",
            metavar="N",
            minimum=1,
            script="nbest",
            compared="n-best size",
        ),
    )
    lattice_samples: int = field(
        default=0,
        metadata=setting(
            help="Lattice samples merged into each list",
            panel="Decoder",
            metavar="N",
            minimum=0,
            script="lattice-samples",
            compared="lattice samples",
            note="not together with --jobs: moses-parallel.pl does not join the samples",
            details="Samples of the search lattice (Chatterjee & Cancedda 2010).",
        ),
    )
    filtering: ModelFilter | None = field(default=None, metadata=parts(_FilterSettings))
    transform: str | None = field(
        default=None,
        metadata=setting(
            help="Command that rewrites lists before scoring, or bpe",
            panel="Decoder",
            metavar="COMMAND",
            script="transform-decoded-file",
            compared="transformation",
            details="A shell command that reads one n-best list and writes another, the path of a "
            "script, or bpe to join subwords at @@.",
        ),
    )
    config_weights_first: bool = field(
        default=False,
        metadata=setting(
            help="Decode first without normalising the weights",
            panel="Decoder",
            script="use-config-weights-for-first-run",
        ),
    )
    forest: Path | None = None
    cache: tuple[str, ...] | None = field(default=None, metadata=parts(_HelperSettings))
    graphs: GraphSettings | None = field(
        default=None,
        metadata=group(
            setting(
                name="forest",
                help="Take search graphs from the decoder",
                panel="Decoder",
                added=True,
                note="mert and kbmira learn from the graphs, other algorithms from the lists",
                details="The decoder writes search graphs, those of all iterations are kept, and "
                "the n-best lists are taken out of them. mert learns from the whole graphs "
                "(Macherey et al. 2008), kbmira finds hope and fear there; other algorithms learn "
                "from the lists.",
            )
        ),
    )


@dataclass(frozen=True)
class _AlgorithmSettings:
    """Settings of ``Optimising.options``."""

    option: Mapping[str, object] = field(
        default_factory=dict,
        metadata=setting(
            aliases=("algorithm-option",),
            help="Setting of the algorithm; repeatable",
            panel="Learning",
            metavar="NAME=VALUE",
            added=True,
            details="`mosesplug algorithms NAME` lists the settings of an algorithm.",
        ),
    )
    epochs: int | None = field(
        default=None,
        metadata=setting(
            help="Passes of an online learner over the data",
            panel="Learning",
            metavar="N",
            minimum=1,
            saved=False,
            added=True,
            details="Passes over the n-best lists after each decoding; with --online, over the "
            "tuning set. The same as --option epochs=N.",
        ),
    )


@dataclass(frozen=True)
class OptimizerSettings:
    """How weights are found in the lists."""

    algorithm: str = field(
        default="mert",
        metadata=setting(
            help="Optimizer; see mosesplug algorithms",
            panel="Learning",
            metavar="NAME",
            added=True,
        ),
    )
    options: Mapping[str, object] = field(default_factory=dict, metadata=parts(_AlgorithmSettings))
    active: tuple[str, ...] | None = field(
        default=None,
        metadata=setting(
            help="Features to tune: LM0_0, or a group: LM0",
            panel="Learning",
            metavar="NAME,...",
            script="activate-features",
            compared="active features",
            shown="all",
            note="a whole group (LM0) is a name too; unknown names are refused",
        ),
    )
    ranges: tuple[str, ...] = field(
        default=(),
        metadata=setting(
            name="range",
            help="Bounds of random starts; repeatable",
            panel="Learning",
            metavar="NAME:MIN..MAX",
            script="range",
            compared="ranges",
            note="names of no feature are refused",
            details="As LM0:0..1, or with one interval for each weight of a group: "
            "tm:0..1,0..1,-1..1,0..1.",
        ),
    )
    window: int = field(
        default=-1,
        metadata=setting(
            name="iterations-window",
            aliases=("window",),
            help="Earlier iterations to learn from; -1: all",
            panel="Learning",
            metavar="N",
            minimum=-1,
            script="prev-aggregate-nbestlist",
            compared="earlier iterations",
        ),
    )
    historic_bests: bool = field(
        default=False,
        metadata=setting(
            help="Start also from the weights of earlier iterations",
            panel="Learning",
            script="historic-bests",
            compared="historic bests",
        ),
    )
    interpolation: float = field(
        default=0.0,
        metadata=setting(
            help="Share of new weights from iteration 4",
            panel="Learning",
            metavar="X",
            minimum=0.0,
            maximum=1.0,
            script="historic-interpolation",
            compared="interpolation",
            shown="all",
            details="From iteration 4 on, the weights are this share of the new ones and the rest "
            "of the ones before.",
        ),
    )
    threads: int = field(
        default=1,
        metadata=setting(
            help="Threads for scoring and learning",
            panel="Learning",
            metavar="N",
            minimum=1,
            script="threads",
            script_default="1",
            shown="all processors",
            details="The results do not depend on it.",
        ),
    )
    seed: int | None = field(
        default=None,
        metadata=setting(
            help="Seed of all random numbers",
            panel="Learning",
            metavar="N",
            added=True,
            shown="drawn, and kept",
            excludes=("predictable-seeds",),
        ),
    )
    predictable_seeds: bool = field(
        default=False,
        metadata=setting(
            help="Seed iteration N with 1000 N",
            panel="Learning",
            script="predictable-seeds",
            compared="predictable seeds",
            note="the seeds are the script's, the random numbers are not",
        ),
    )
    sharding: Sharding | None = field(default=None, metadata=group())


@dataclass(frozen=True)
class OnlineSettings:
    """Learning while decoding: each mini-batch is decoded with the current weights."""

    decoder: OnlineDecoder = field(
        default="auto",
        metadata=setting(
            name="online-decoder",
            help="auto, server, or a process for each batch",
            panel="Online",
            metavar="HOW",
            added=True,
            note="auto takes the server where the decoder can be one",
            details="server keeps the decoder running, process starts one for each mini-batch, "
            "auto uses a server if the decoder can be one.",
        ),
    )
    strict: bool = field(
        default=False,
        metadata=setting(
            name="strict-online",
            help="Fail if a server does not follow new weights",
            panel="Online",
            excludes=("online-decoder=process",),
            added=True,
            note="else it is restarted for each batch",
            details="Without it, a server whose lists depend on its starting weights is restarted "
            "for each mini-batch.",
        ),
    )
    servers: int = field(
        default=1,
        metadata=setting(
            name="online-servers",
            help="Servers to run; each loads the model",
            panel="Online",
            metavar="N",
            minimum=1,
            excludes=("online-decoder=process",),
            added=True,
        ),
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class _HeldOutDecoder:
    """Setting of ``HeldOut.decoder``."""

    heldout_decoder: str | None = field(
        default=None,
        metadata=setting(
            help="Its decoder, if not DECODER",
            panel="Held-out",
            metavar="DECODER",
            added=True,
            details="A program, or forest:DIR with search graphs of the held-out set.",
        ),
    )


@dataclass(frozen=True)
class HeldOutSet:
    """A second set that is only translated and scored, to choose weights and to stop early.

    Attributes:
        decoder: what translates it, if not the decoder of the tuning set; or None.
        forest: place of search graphs of it, which take the decoder's place; or None.
    """

    input: Path = field(
        metadata=setting(
            name="heldout",
            help="Held-out set, to choose weights",
            panel="Held-out",
            metavar="INPUT REFS",
            second="heldout-refs",
            requires=("heldout-refs",),
            exists="file",
            what="the held-out text",
            added=True,
            details="A second set of source sentences and their references. It is translated with "
            "the starting weights and after each iteration.",
        )
    )
    references: Path = field(
        metadata=setting(
            name="heldout-refs",
            help="References of the held-out set",
            panel="Held-out",
            metavar="REFS",
            exists="references",
            added=True,
        )
    )
    every: int = field(
        default=0,
        metadata=setting(
            name="heldout-every",
            help="Translate it after N mini-batches, too",
            panel="Held-out",
            metavar="N",
            shown="off",
            minimum=1,
            requires=("online",),
            added=True,
        ),
    )
    patience: int = field(
        default=0,
        metadata=setting(
            help="Stop after N scores without improvement",
            panel="Held-out",
            metavar="N",
            shown="off",
            minimum=1,
            added=True,
            details="The score with the starting weights does not count.",
        ),
    )
    decoder: MosesDecoder | None = field(default=None, metadata=parts(_HeldOutDecoder))
    forest: Path | None = None


@dataclass(frozen=True)
class _Selection:
    """Settings of ``Configuration.select``."""

    select: Literal["best-dev", "last", "average", "best-heldout", "median"] | None = field(
        default=None,
        metadata=setting(
            help="best-dev, last, average or best-heldout weights",
            panel="Learning",
            metavar="HOW",
            added=True,
            note="default: best-heldout with --heldout; else last; with --online what the"
            " learner's averaging says",
            details="best-dev: the decoded weights with the best 1-best score on the tuning set. "
            "last: those of the last iteration. average: the mean over all iterations, with "
            "--online over all updates. best-heldout: the best on the held-out set. Default: "
            "best-heldout with --heldout; else best-dev (mert-moses: last), or with --online what "
            "the learner's averaging says. With --runs it chooses among the runs: median "
            "(default), best-heldout or average.",
        ),
    )
    last: bool = field(
        default=False,
        metadata=setting(
            help="The same as --select last",
            panel="Learning",
            saved=False,
            details="With --runs, the same as --select-run last.",
        ),
    )
    select_run: Select | None = field(
        default=None,
        metadata=setting(
            help="Weights of each run, as --select for one",
            panel="Repeats",
            metavar="HOW",
            requires=("runs",),
            details="best-dev, last, average or best-heldout, as --select for a single run.",
        ),
    )


@dataclass(frozen=True)
class _EarlierRun:
    """Settings of ``Configuration.existing``."""

    resume: bool = field(
        default=False,
        metadata=setting(
            name="continue",
            help="Resume after the last finished iteration",
            panel="Output",
            saved=False,
            script="continue",
            note="with any algorithm; an unfinished run of mert-moses.pl itself is taken over too",
        ),
    )
    overwrite: bool = field(
        default=False,
        metadata=setting(
            help="Replace an earlier run in the directory",
            panel="Output",
            saved=False,
            excludes=("continue",),
            details="mert-moses always does that, unless --continue is given.",
        ),
    )


@dataclass(frozen=True)
class Configuration:
    """One tuning run.

    Attributes:
        metric: what is optimized.
        existing: what to do with an earlier run in the working directory: ``continue`` it,
            ``overwrite`` it, or ``refuse`` to touch it.
        select: which weights are the result. None: ``best-heldout`` if there is a held-out set;
            else ``last``, or online what the learner's ``averaging`` says.
        maximum_iterations: 0 for no limit. With --online, the learner's epochs are a limit, too.
    """

    input: Path = field(
        metadata=setting(
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
        metadata=setting(
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
        metadata=setting(
            help="The decoder's moses.ini with starting weights",
            panel="Data",
            is_argument=True,
            script="config",
            note="or the fourth argument",
            exists="file",
            what="the configuration",
        )
    )
    working_directory: Path = field(
        metadata=setting(
            name="working-dir",
            help="Directory of all files of the run",
            panel="Data",
            metavar="DIR",
            script="working-dir",
            script_default="mert-work",
            shown="tuning",
            details="It is the decoder's current directory.",
        )
    )
    metric: Metric = field(metadata=parts(_MetricSettings))
    decoding: DecodingSettings
    optimising: OptimizerSettings = field(default_factory=OptimizerSettings)
    maximum_iterations: int = field(
        default=25,
        metadata=setting(
            name="max-iterations",
            help="Most iterations; 0: no limit",
            panel="Learning",
            metavar="N",
            minimum=0,
            script="maximum-iterations",
            details="With --online, the default is the learner's number of epochs.",
        ),
    )
    minimum_change: float = field(
        default=1e-5,
        metadata=setting(
            name="min-change",
            help="Stop if no weight moves this much",
            panel="Learning",
            metavar="X",
            minimum=0.0,
            details="See the column change in the table of iterations.",
        ),
    )
    select: Select | None = field(default=None, metadata=parts(_Selection))
    existing: Literal["refuse", "overwrite", "continue"] = field(
        default="refuse", metadata=parts(_EarlierRun)
    )
    skip_decoder: bool = field(
        default=False,
        metadata=setting(
            help="Use the first n-best list in the directory",
            panel="Decoder",
            script="skip-decoder",
        ),
    )
    keep_extractor_files: bool = field(
        default=False,
        metadata=setting(
            help="Write features.dat and scores.dat, too",
            panel="Output",
            added=True,
        ),
    )
    online: OnlineSettings | None = field(
        default=None,
        metadata=group(
            setting(
                help="Learn while decoding, a mini-batch at a time",
                panel="Online",
                added=True,
                note="for online learners only; runN.best100.out.gz is not written, the lists are"
                " in the store",
                details="Each mini-batch is decoded with the current weights, then the learner "
                "updates them. For online learners only; the n-best lists are kept in the store "
                "only.",
            )
        ),
    )
    held_out: HeldOutSet | None = field(default=None, metadata=group(on="heldout"))
    sparse_weights: Path | None = field(
        default=None,
        metadata=setting(
            help="Starting weights of sparse features",
            panel="Data",
            metavar="FILE",
            exists="file",
            what="the sparse weights",
            added=True,
            details="A name and a number on each line. They are added to those that CONFIG names.",
        ),
    )
    start_from: Path | None = field(
        default=None,
        metadata=setting(
            help="Start from the result of the run in DIR",
            panel="Data",
            metavar="DIR",
            added=True,
        ),
    )
    strict: bool = field(
        default=False,
        metadata=setting(
            help="End with an error where else there is a warning",
            panel="Output",
            added=True,
            details="No weights are written if one weight dominates all others, a score falls, "
            "references are in another language or tokenised differently, lists have one "
            "hypothesis each, or features never vary.",
        ),
    )
    max_drop: float = field(
        default=0.05,
        metadata=setting(
            help="Accepted drop of the score below the first",
            panel="Output",
            metavar="X",
            minimum=0.0,
            added=True,
        ),
    )


@dataclass(frozen=True)
class Repeats:
    """Several runs that differ in their seed only."""

    runs: int | None = field(
        default=None,
        metadata=setting(
            help="Tune N times, with seeds S, S+1, ...",
            panel="Repeats",
            metavar="N",
            minimum=2,
            details="Each run has its own directory (run.1, run.2, ...), which is the decoder's "
            "current directory then. Prints how much the runs differ (Clark et al. 2011). "
            "Whose weights the result has is said by --select.",
        ),
    )


@dataclass(frozen=True)
class OutputSettings:
    """What is shown while it runs."""

    quiet: bool = field(
        default=False,
        metadata=setting(help="Print errors only", panel="Output", saved=False, added=True),
    )
    verbose: bool = field(
        default=False,
        metadata=setting(
            help="Show each command that is run", panel="Output", saved=False, script="verbose"
        ),
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
