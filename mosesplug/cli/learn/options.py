"""The options of the commands about learning; nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from mosesplug.cli.learn.setting_flags import rewrite_settings
from mosesplug.cli.shared.commands import NestedSettings
from mosesplug.cli.shared.completion import complete_algorithms, complete_weight_formats
from mosesplug.cli.shared.parameters import Json, Lists, Output, Quiet
from mosesplug.options import Opt, list_options
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.lists import ListSettings


@dataclass(frozen=True)
class AlgorithmsCommand:
    """List the recommended algorithms or all, or explain one and its settings.

    --algorithm takes all of them. All learn from n-best lists. The table of all says which also
    learn from search graphs, tune sparse features, learn online, from mini-batches (--online and
    --shards), and keep bounds of weights (optimize --bound).

    Examples: mosesplug algorithms; mosesplug algorithms --all; mosesplug algorithms mira
    """

    name: Annotated[
        str | None,
        Opt(
            "An algorithm, to show its settings.",
            is_positional=True,
            metavar="NAME",
            complete=complete_algorithms,
        ),
    ] = None
    all: Annotated[
        bool, Opt("List all algorithms, not only the recommended ones.", excludes=("name",))
    ] = False
    json: Json = False


_SHARED = frozenset(
    {"refs", "source", "init", "sparse-init", "metric", "metric-settings", "option", "threads"}
    | {"held-out", "folds", "iterations"}
    | {option.name for option in list_options(ListSettings)}
)
"""Settings of ``optimize`` that make sense in a comparison."""
_CHANGES: dict[str, dict[str, Any]] = {
    "format": {"name": "list-format"},  # --format is that of the table
    "iterations": {"help": "Iterations of STORE; -N: the newest N"},
    "folds": {"help": "Score each of K folds with weights from the others"},
}


def _list_bench_options() -> tuple[Opt, ...]:
    return tuple(
        replace(option, **_CHANGES.get(option.name, {}))
        for option in list_options(LearningSettings)
        if option.name in _SHARED
    )


@dataclass(frozen=True)
class BenchOptimizersCommand:
    """Compare the scores of algorithms on the same lists and starting weights.

    The table has the mean and standard deviation over the seeds of the score on the merged lists,
    the CPU seconds of one run in all threads, without loading and compiling, and the number of
    weights that are not 0. An algorithm that rejects the lists is listed with its reason. --option
    applies to every algorithm that has it. As in a run, the starting weights are divided by their
    L1 norm. With --in-turn, each list is learned from with the lists before it, from the weights
    of the list before. With --folds, weights are learned without each fold and scored on it.
    --optimum is for few features and hypotheses (mert's method=exact).

    Examples: mosesplug bench-optimizers tuning --seeds 5 --held-out 0.2;
    mosesplug bench-optimizers run*.best100.out.gz --refs dev.en --init run1.dense
    --algorithms mert,kbmira,pro --format markdown
    """

    places: Lists
    algorithms: Annotated[
        str | None,
        Opt(
            "The algorithms to run [all]",
            "Learning",
            metavar="NAME,...",
            complete=complete_algorithms,
        ),
    ] = None
    seeds: Annotated[int, Opt("Run each with seeds 1 to N", "Learning", minimum=1)] = 3
    in_turn: Annotated[
        bool, Opt("Learn after each list or iteration, as a run does", "Learning")
    ] = False
    optimum: Annotated[
        bool,
        Opt("Also find the best weights of all, and each gap to them", "Learning"),
    ] = False
    split_seed: Annotated[
        int, Opt("Seed of the choice of held-out sentences or folds", "Held-out", minimum=0)
    ] = 1
    json: Json = False
    quiet: Quiet = False
    settings: Annotated[
        dict[str, Any] | None,
        NestedSettings(_list_bench_options()),
    ] = None


@dataclass(frozen=True)
class ExperimentCommand:
    """Tune, test and compare the systems of an experiment file.

    The file names systems (settings of tune, or another program), feature sets, tuning sets, seeds,
    test sets and a baseline; the manual explains it under "Run an experiment". Each system is tuned
    with each of its feature sets, tuning sets and seeds, and translates the test sets. The table is
    printed, and written into the directory of the experiment as text, Markdown, LaTeX, JSON and a
    page with figures.

    To continue after an interruption, repeat the command. Finished runs are not repeated.

    Examples: mosesplug experiment demo.toml --dry-run; mosesplug experiment demo.toml --jobs 2
    """

    file: Annotated[
        Path, Opt("The experiment file.", is_positional=True, metavar="FILE.toml", exists="file")
    ]
    directory: Annotated[
        Path | None,
        Opt(
            "Directory of all runs and of the table [that of the file].",
            metavar="DIR",
            is_output=True,
        ),
    ] = None
    path: Annotated[
        list[str] | None,
        Opt("Replace a value of [paths]; repeatable.", metavar="NAME=PATH"),
    ] = None
    systems: Annotated[str | None, Opt("Run only these systems.", metavar="NAME,...")] = None
    seeds: Annotated[
        int | None, Opt("Run only the first N seeds of each system.", metavar="N", minimum=1)
    ] = None
    jobs: Annotated[
        int,
        Opt("Number of runs at the same time.", metavar="N", minimum=1, excludes=("scheduler",)),
    ] = 1
    scheduler: Annotated[
        str | None,
        Opt("Dask cluster that makes the runs: tcp://HOST:PORT.", metavar="ADDRESS"),
    ] = None
    dry_run: Annotated[bool, Opt("List the runs with their state and estimated time.")] = False
    table: Annotated[
        bool, Opt("Print the table of finished runs; run nothing.", excludes=("dry-run",))
    ] = False
    json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True)
class CacheCommand:
    """List the files that only save time, in the user's cache directory.

    They are the arrays of search graphs that a command has parsed. The environment variable
    MOSESPLUG_CACHE_DIR names another directory; if it is empty, nothing is kept.

    Example: mosesplug cache
    """

    clear: Annotated[bool, Opt("Remove the files.")] = False
    json: Json = False


@dataclass(frozen=True)
class OptimizeCommand:
    """Learn weights from existing n-best lists or search graphs, without a decoder.

    Prints the scores of the starting weights and of the result on the merged lists or the graphs.
    Sparse weights that a format cannot hold go to OUTPUT.sparse. `mosesplug algorithms NAME` lists
    the settings of an algorithm for --option, `mosesplug weights convert --help` all formats.

    Example: mosesplug optimize --from tuning --algorithm kbmira --folds 5 -o tuned
    """

    COMMON: ClassVar = frozenset(
        {"nbest", "graphs", "from", "refs", "format", "scores", "add-feature", "init", "metric"}
        | {"algorithm", "option", "seed", "threads", "held-out", "folds", "runs", "output", "quiet"}
    )
    files: Annotated[
        list[Path] | None,
        Opt("More n-best lists or search graphs.", is_positional=True, metavar="FILE"),
    ] = None
    output: Output = None
    weights_format: Annotated[
        str | None,
        Opt(
            "Format of the result: json, yaml, lines, ... [by the name of FILE]",
            metavar="NAME",
            complete=complete_weight_formats,
        ),
    ] = None
    html: Annotated[
        Path | None, Opt("Write gains and trade-offs as a page.", metavar="FILE", is_output=True)
    ] = None
    json: Json = False
    quiet: Quiet = False
    settings: Annotated[dict[str, Any] | None, NestedSettings(list_options(LearningSettings))] = (
        None
    )

    @staticmethod
    def prepare(words: Sequence[str], own: Iterable[str]) -> list[str]:
        """Accept the settings of algorithms as options, too."""
        return list(rewrite_settings(words, frozenset(own)))


@dataclass(frozen=True)
class MetricsCommand:
    """List the metrics with their settings, and those that are not there.

    --metric takes their names, or a weighted sum of them, and --metric-settings their settings. The
    list says how to bring others: as numbers that another program computed, or as a plug-in.

    Example: mosesplug metrics
    """

    json: Json = False


@dataclass(frozen=True)
class PluginsCommand:
    """List the plug-ins of installed packages.

    They add metrics, formats of lists and graphs, decoders and algorithms. A package registers them
    through the entry points mosesplug.metrics, mosesplug.formats, mosesplug.graphs,
    mosesplug.decoders and mosesplug.algorithms.
    Plug-ins that cannot be used are listed with the reason; commands that do not name them work.

    Example: mosesplug plugins
    """

    json: Json = False


@dataclass(frozen=True)
class WarmUpCommand:
    """Compile the inner loops of commands, so that no later command waits for it.

    Runs each command on a few sentences. The compiled code is kept where later commands
    find it: in NUMBA_CACHE_DIR, beside the package, or in the user's cache directory.
    Installers and container images call this once.

    COMMAND is score, optimize, tune, forest, mbr or oracle, or a program of Moses:
    extractor, mert, kbmira or pro. tune includes "tune --forest" and "tune --online", and
    optimize includes "optimize --graphs"; these can also be named alone. Online learning
    uses mira, unless --algorithm names an online learner.

    Examples: mosesplug warm-up; mosesplug warm-up --for "tune --online" --algorithm arow
    """

    tasks: Annotated[
        list[str] | None,
        Opt("A command, such as tune or kbmira; repeatable [all].", name="for", metavar="COMMAND"),
    ] = None
    algorithms: Annotated[
        list[str] | None,
        Opt(
            "An algorithm to run [mert, kbmira].",
            name="algorithm",
            metavar="NAME",
            complete=complete_algorithms,
        ),
    ] = None
    json: Json = False
