"""The table of the commands; nothing is imported until one is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mosesplug.cli.shared.exits import TUNING_CONTINUES

TYPER_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["--help", "-h"]},
}


@dataclass(frozen=True)
class Command:
    """A command that is not imported yet.

    Attributes:
        run: its function, ``module:function``; a module that begins with a dot is of ``cli``.
        help: one line for the list of commands.
        fields: the class of its options, ``module:Class``, of which the function takes an instance.
            The class may have ``COMMON``, the options that ``--help`` shows, and ``prepare``,
            which changes the words of the command line.
        after_interrupt: shown when it is interrupted.
    """

    run: str
    help: str
    fields: str
    after_interrupt: str = ""


@dataclass(frozen=True)
class CommandGroup:
    """Commands under one word.

    Attributes:
        help: one line for the list of commands.
        commands: the commands by name.
    """

    help: str
    commands: Mapping[str, Command]


Table = Mapping[str, Command | CommandGroup]

MERT_MOSES = Command(
    ".run.mert_moses:main",
    "Tune with the command line of mert-moses.pl.",
    ".run.options:MertMosesCommand",
)

COMMANDS: Table = {
    "tune": Command(
        ".run.tune:tune",
        "Tune a system: decode, optimize, repeat, write moses.ini.",
        ".run.options:TuneCommand",
        after_interrupt=TUNING_CONTINUES,
    ),
    "ask": Command(
        ".run.ask:ask",
        "Print the weights for the next decoding, which you run yourself.",
        ".run.options:AskCommand",
        after_interrupt="The same command continues.",
    ),
    "tell": Command(
        ".run.ask:tell",
        "Store and learn from the n-best list of that decoder.",
        ".run.options:TellCommand",
        after_interrupt="mosesplug ask continues the run, and prints the weights whose list is"
        " missing.",
    ),
    "mert-moses": MERT_MOSES,
    "settings": Command(
        ".run.settings:settings",
        "Explain a setting of a tuning run, or print all as TOML.",
        ".run.options:SettingsCommand",
    ),
    "optimize": Command(
        ".learn.optimize:optimize",
        "Learn weights from existing n-best lists or search graphs.",
        ".learn.options:OptimizeCommand",
    ),
    "algorithms": Command(
        ".learn.algorithms:list_algorithms",
        "List the algorithms, or explain one and its settings.",
        ".learn.options:AlgorithmsCommand",
    ),
    "metrics": Command(
        ".learn.metrics:metrics",
        "List the metrics with their settings, and what is not there.",
        ".learn.options:MetricsCommand",
    ),
    "cache": Command(
        ".learn.cache:cache",
        "List or remove files that only save time.",
        ".learn.options:CacheCommand",
    ),
    "plugins": Command(
        ".learn.plugins:plugins",
        "List what other installed packages add to mosesplug.",
        ".learn.options:PluginsCommand",
    ),
    "bench-optimizers": Command(
        ".learn.bench_optimizers:bench_optimizers",
        "Compare algorithms on the same n-best lists.",
        ".learn.options:BenchOptimizersCommand",
    ),
    "experiment": Command(
        ".learn.experiment:experiment",
        "Tune, test and compare the systems of an experiment file.",
        ".learn.options:ExperimentCommand",
        after_interrupt="The same command continues.",
    ),
    "check": Command(
        ".inspect.check:check",
        "Check a tuning set and its lists before tuning.",
        ".inspect.score_options:CheckCommand",
    ),
    "oracle": Command(
        ".inspect.oracle:oracle",
        "Find the oracle translations of n-best lists.",
        ".inspect.list_options:OracleCommand",
    ),
    "mbr": Command(
        ".inspect.mbr:mbr",
        "Choose translations by minimum Bayes risk.",
        ".inspect.list_options:MbrCommand",
    ),
    "rerank": Command(
        ".inspect.rerank:rerank",
        "Choose the best of each n-best list by other weights.",
        ".inspect.list_options:RerankCommand",
    ),
    "nbest": CommandGroup(
        "Inspect and maintain the n-best lists of a store.",
        {
            "ls": Command(
                ".inspect.nbest_summary:ls",
                "List the iterations of a store.",
                ".inspect.store_options:NbestLsCommand",
            ),
            "show": Command(
                ".inspect.nbest_show:show",
                "Show the hypotheses of a sentence.",
                ".inspect.store_options:NbestShowCommand",
            ),
            "diff": Command(
                ".inspect.nbest_show:diff",
                "Compare hypotheses, weight vectors or iterations.",
                ".inspect.store_options:NbestDiffCommand",
            ),
            "grep": Command(
                ".inspect.nbest_summary:grep",
                "Search texts and features.",
                ".inspect.store_options:NbestGrepCommand",
            ),
            "stats": Command(
                ".inspect.nbest_summary:stats",
                "Print statistics of features and lists.",
                ".inspect.store_options:NbestStatsCommand",
            ),
            "export": Command(
                ".inspect.nbest_store:export",
                "Write n-best lists, arrays or a table.",
                ".inspect.store_options:NbestExportCommand",
            ),
            "import": Command(
                ".inspect.nbest_store:import_",
                "Create a store of n-best lists.",
                ".inspect.store_options:NbestImportCommand",
            ),
            "verify": Command(
                ".inspect.nbest_store:verify",
                "Verify every record.",
                ".inspect.store_options:NbestVerifyCommand",
            ),
            "compact": Command(
                ".inspect.nbest_store:compact",
                "Remove free pages.",
                ".inspect.store_options:NbestCompactCommand",
            ),
            "copy": Command(
                ".inspect.nbest_store:copy",
                "Copy a store.",
                ".inspect.store_options:NbestCopyCommand",
            ),
            "drop": Command(
                ".inspect.nbest_store:drop",
                "Remove the newest iteration.",
                ".inspect.store_options:NbestDropCommand",
            ),
        },
    ),
    "weights": CommandGroup(
        "Show, compare, combine and convert weights.",
        {
            "show": Command(
                ".inspect.weights:show",
                "Show weights, or those of a run's iterations.",
                ".inspect.weight_options:WeightsShowCommand",
            ),
            "diff": Command(
                ".inspect.weights:diff",
                "Compare two weight vectors.",
                ".inspect.weight_options:WeightsDiffCommand",
            ),
            "why": Command(
                ".inspect.nbest_show:why",
                "Show why a hypothesis wins over another one.",
                ".inspect.weight_options:WeightsWhyCommand",
            ),
            "average": Command(
                ".inspect.weights_make:average",
                "Average several weight vectors.",
                ".inspect.weight_options:WeightsAverageCommand",
            ),
            "interpolate": Command(
                ".inspect.weights_make:interpolate",
                "Interpolate between two weight vectors.",
                ".inspect.weight_options:WeightsInterpolateCommand",
            ),
            "normalize": Command(
                ".inspect.weights_make:normalize",
                "Divide weights by their norm.",
                ".inspect.weight_options:WeightsNormalizeCommand",
            ),
            "convert": Command(
                ".inspect.weights_make:convert",
                "Write weights in another format.",
                ".inspect.weight_options:WeightsConvertCommand",
            ),
        },
    ),
    "line": Command(
        ".inspect.line:line", "Print the score along a line.", ".inspect.store_options:LineCommand"
    ),
    "score": Command(
        ".inspect.score:score",
        "Score a translation by several metrics.",
        ".inspect.score_options:ScoreCommand",
    ),
    "compare": Command(
        ".inspect.compare:compare",
        "Test whether systems differ by more than chance.",
        ".inspect.score_options:CompareCommand",
    ),
    "report": Command(
        ".inspect.report:report",
        "Write runs as one HTML page, to read and to explore.",
        ".inspect.store_options:ReportCommand",
    ),
    "forest": CommandGroup(
        "Search graphs: n-best lists, oracles, statistics and errors.",
        {
            "nbest": Command(
                ".inspect.forest:nbest",
                "Write n-best lists: best, diverse or sampled translations.",
                ".inspect.list_options:ForestNbestCommand",
            ),
            "oracle": Command(
                ".inspect.forest:oracle",
                "Print the oracle translations of search graphs.",
                ".inspect.list_options:ForestOracleCommand",
            ),
            "info": Command(
                ".inspect.forest:info",
                "Count nodes, edges and derivations.",
                ".inspect.list_options:ForestInfoCommand",
            ),
            "errors": Command(
                ".inspect.forest:errors",
                "Tell search errors from model errors.",
                ".inspect.list_options:ForestErrorsCommand",
            ),
        },
    ),
    "install-tools": Command(
        ".moses.install:install_tools",
        "Write launchers under the names of other toolkits' programs.",
        ".moses.install:InstallTools",
    ),
    "warm-up": Command(
        "mosesplug.extras.warm_up_command:warm_up",
        "Compile inner loops in advance.",
        ".learn.options:WarmUpCommand",
    ),
}
