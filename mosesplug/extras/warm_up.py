"""Compile in advance the kernels that commands use.

The table of commands and ``mosesplug.warm_up`` name this module by a string: looking up an entry
point would delay ``mosesplug --help``, which lists the command.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosesplug.errors import UsageError, suggest
from mosesplug.kernels import count_compiled
from mosesplug.metrics.plain import kernels_only
from mosesplug.scratch import ScratchDirectory

if TYPE_CHECKING:
    pass


ALGORITHMS = ("mert", "kbmira")


@dataclass(frozen=True)
class WarmUpReport:
    """The kernels that were compiled for a task.

    Attributes:
        task: a command, with the option that makes it use other kernels: ``tune --forest``.
        kernels: number of kernels that were compiled; 0 if all were in the cache.
        seconds: wall time.

    Example:
        >>> import mosesplug
        >>> mosesplug.WarmUpReport("score", 0, 0.5).kernels
        0
    """

    task: str
    kernels: int
    seconds: float


def warm_up(
    tasks: Sequence[str] = (), algorithms: Sequence[str] = ALGORITHMS
) -> list[WarmUpReport]:
    """Compile the kernels of some tasks into the cache.

    The tasks run on a few sentences.

    Args:
        tasks: commands and Moses' programs: ``score``, ``optimize``, ``tune``, ``forest``,
            ``mbr``, ``oracle``, ``extractor``, ``mert``, ``kbmira``, ``pro``; empty for all.
            ``tune`` includes ``tune --forest`` and ``tune --online``, which can be named alone,
            and ``optimize`` includes ``optimize --graphs``.
        algorithms: the algorithms of ``optimize`` and ``tune``. ``optimize --graphs`` and
            ``tune --online`` skip those that cannot learn from graphs, or online; the latter uses
            ``mira`` if none of them can.

    Raises:
        UsageError: an unknown command or algorithm.

    Example:
        >>> import mosesplug
        >>> [warming.task for warming in mosesplug.warm_up(["score"])]
        ['score']
    """
    from mosesplug.optimizers import algorithm as find_algorithm

    algorithms = tuple(dict.fromkeys(find_algorithm(name).name for name in algorithms))
    done = []
    for task in _choose_tasks(tasks) if tasks else TASKS:
        start, before = time.perf_counter(), count_compiled()
        with ScratchDirectory() as directory, kernels_only():
            TASKS[task](Path(directory), algorithms)
        done.append(WarmUpReport(task, count_compiled() - before, time.perf_counter() - start))
    return done


_SYNONYMS = {
    "compare": "score",
    "mert-moses": "tune",
    "mert-moses.pl": "tune",
    "rerank": "mbr",
    "hgdecode": "forest",
}
"""Commands that call the kernels of another one."""


def _choose_tasks(commands: Sequence[str]) -> list[str]:
    """Return the tasks of some commands, each once.

    Raises:
        UsageError: an unknown command.
    """
    chosen: dict[str, None] = {}
    for command in commands:
        name = _SYNONYMS.get(command, command)
        # A command stands for its variants, too.
        variants = [task for task in TASKS if task == name or task.startswith(f"{name} --")]
        if not variants:
            raise UsageError(
                f"warm-up has nothing to compile for {command!r}: use {', '.join(TASKS)}"
                f"{suggest(command, [*TASKS, *_SYNONYMS])}"
            )
        chosen |= dict.fromkeys(variants)
    return list(chosen)


_REFERENCES = ("the red house is old", "a dog runs in the park", "they drink cold milk now")
_GROUPS = ("LM0= {0} Distortion0= {1} TM0= {2} {3}", "LM0= {3} Distortion0= {0} TM0= {1} {2}")
_WEIGHTS = "LM0= 0.5\nDistortion0= 0.3\nTM0= 0.2 0.2\n"
_CONFIG = f"""\
[feature]
UnknownWordPenalty
KENLM name=LM0
Distortion
PhraseDictionaryMemory name=TM0 num-features=2

[weight]
UnknownWordPenalty0= 1
{_WEIGHTS}"""
_GRAPH_FEATURES = ("LM0", "Distortion0", "TM0_1", "TM0_2", "UnknownWordPenalty0")
_MERT = {"restarts": 1, "random_directions": 1}
"""Settings with which MERT takes little time and searches in all ways."""
_ONLINE = "mira"
"""Learns online if no other algorithm is given that can."""


def _write_lists(directory: Path) -> tuple[list[Path], Path]:
    """Write two n-best lists and their references; return the paths."""
    references = directory / "references"
    references.write_text("".join(f"{line}\n" for line in _REFERENCES))
    paths = []
    for number, groups in enumerate(_GROUPS):
        lines = []
        for sentence, reference in enumerate(_REFERENCES):
            words = reference.split()
            for rank in range(len(words)):
                text = " ".join([*words[:rank], words[rank][::-1], *words[rank + 1 :]])
                values = [-1.0 - (rank * step + number) % 5 / 4 for step in (1, 2, 3, 4)]
                lines.append(f"{sentence} ||| {text} ||| {groups.format(*values)} ||| {-rank}\n")
        paths.append(directory / f"run{number + 1}.best100.out")
        paths[-1].write_text("".join(lines))
    return paths, references


def _write_graphs(directory: Path) -> tuple[Path, Path]:
    """Write search graphs, their weights and their references; return the paths."""
    from formats.graphs.hypergraph import write_hypergraph_weights
    from mosesplug.tuning.invented_run import LINES, write_invented_graphs

    graphs, references = directory / "graphs", directory / "references"
    write_invented_graphs(graphs, _GRAPH_FEATURES)
    write_hypergraph_weights(graphs / "weights", _GRAPH_FEATURES, (0.5, 0.3, 0.2, 0.2, 1.0))
    references.write_text(LINES)
    return graphs, references


def score_translations(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``score`` and ``compare``."""
    from mosesplug.api.scoring import compare, score

    _, references = _write_lists(directory)
    for name, skipped in (("one", 1), ("other", 2)):
        text = "".join(f"{line[skipped:]}\n" for line in _REFERENCES)
        (directory / name).write_text(text)
    score(directory / "one", references)
    compare({name: directory / name for name in ("one", "other")}, references)


def learn_from_lists(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``optimize`` on n-best lists."""
    lists, references = _write_lists(directory)
    for algorithm in algorithms:
        _optimize(algorithm, lists=lists, references=references)


def learn_from_graphs(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``optimize --graphs`` with the algorithms that learn from graphs."""
    from mosesplug.metrics import metric
    from mosesplug.optimizers import algorithm as find_algorithm

    graphs, references = _write_graphs(directory)
    for name in algorithms:
        if find_algorithm(name).can_learn_from_graphs(metric("BLEU")):
            _optimize(name, graphs=graphs, references=references)


def _optimize(algorithm: str, **data: Any) -> None:
    from mosesplug.api.optimize import optimize

    options = _MERT if algorithm == "mert" else None
    optimize(**data, algorithm=algorithm, options=options, seed=1, threads=1)


def tune_on_lists(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``tune``."""
    for algorithm in algorithms:
        _tune(directory / algorithm, algorithm=algorithm)


def tune_on_graphs(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``tune --forest``."""
    for algorithm in algorithms:
        _tune(directory / algorithm, algorithm=algorithm, forest=True)


def tune_online(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``tune --online`` with the algorithms that learn online."""
    from mosesplug.optimizers import algorithm as find_algorithm

    able = [name for name in algorithms if find_algorithm(name).learner is not None]
    for algorithm in able or [_ONLINE]:
        _tune(directory / algorithm, algorithm=algorithm, online=True)


def _tune(directory: Path, **keywords: Any) -> None:
    """Tune on invented sentences, as with a decoder."""
    from formats.moses.ini import read_moses_ini
    from formats.moses.ini_features import list_features
    from mosesplug.api.keywords import collect_keywords
    from mosesplug.optimizers import algorithm as find_algorithm
    from mosesplug.settings.algorithm_options import make_options
    from mosesplug.settings.build import make_plan
    from mosesplug.settings.defaults import fill_defaults
    from mosesplug.tuning.context import RunData
    from mosesplug.tuning.graphs.learning import read_fixed_weights
    from mosesplug.tuning.invented_run import LINES, tune_invented_sentences
    from mosesplug.tuning.loop import finish_run
    from mosesplug.tuning.weights import Weights

    work = directory / "work"
    work.mkdir(parents=True)
    texts, config, decoder = directory / "texts", directory / "moses.ini", directory / "decoder"
    texts.write_text(LINES)
    config.write_text(_CONFIG)
    decoder.touch(0o755)  # never called
    values = collect_keywords(
        {
            "input": texts,
            "references": texts,
            "decoder": decoder,
            "config": config,
            "working_dir": work,
            "seed": 1,
            **keywords,
        }
    )
    configuration = make_plan(fill_defaults(values)).configuration
    optimization = configuration.optimization
    algorithm = find_algorithm(optimization.algorithm)
    show = list_features(read_moses_ini(config))
    data = RunData(
        configuration,
        show,
        Weights(show.values, {}),
        configuration.metric.prepare([LINES.encode().splitlines()]),
        seed=1,
        fixed_weights=read_fixed_weights(configuration, config, algorithm),
    )
    optimizer = algorithm.bind(make_options(algorithm, optimization.options))
    tune_invented_sentences(data, config, optimizer, work, finish_run)


def search_graphs(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``forest nbest``, ``forest oracle`` and ``forest info``."""
    import numpy as np

    from formats.references import read_references
    from mosesplug.forest.oracles.corpus import model_oracles
    from mosesplug.learning.weighted_graphs import read_graph_weights, read_weighted_graphs
    from mosesplug.results.choices.graphs import (
        GraphListSettings,
        find_graph_oracles,
        make_list,
        read_oracle_graphs,
        summarize_graph,
    )

    place, references = _write_graphs(directory)
    weights = read_graph_weights(None, [place])
    graphs = list(read_weighted_graphs([place], weights))
    for settings in (
        GraphListSettings(),
        GraphListSettings(distinct=False),
        GraphListSettings(penalty=0.1),
        GraphListSettings(samples=10),
    ):
        make_list(graphs[0], settings, np.random.default_rng(1))
    summarize_graph(graphs[0], has_weights=True)
    prepared = list(read_oracle_graphs(graphs, read_references(references)))
    model_oracles(prepared)
    for method in ("greedy", "sentence", "linear"):
        find_graph_oracles(prepared, method)


def minimize_risk(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``mbr`` and ``rerank --mbr``."""
    from mosesplug.api.reranking import rerank
    from mosesplug.forest.mbr import Criterion
    from mosesplug.learning.weighted_graphs import read_graph_weights, read_weighted_graphs
    from mosesplug.metrics.bleu.linear import LinearBleu
    from mosesplug.results.choices.mbr import decide_translations, read_graph_tasks, read_list_tasks
    from mosesplug.settings.lists import NO_SETTINGS

    place, _ = _write_graphs(directory)
    (path, *_), _ = _write_lists(directory)
    weights = read_graph_weights(None, [place])
    for kind in ("consensus", "list", "lattice"):
        for beam in (None, 2.0):
            gains = LinearBleu.of_precisions(0.8, 0.6)
            criterion = Criterion(kind, 1.0, 100, beam, gains)
            graphs = read_weighted_graphs([place], weights)
            list(decide_translations(read_graph_tasks(graphs), criterion, 1))
        tasks = read_list_tasks(path, NO_SETTINGS, None)
        list(decide_translations(tasks, criterion, 1))
    rerank(path, "LM0=1 Distortion0=1 TM0_1=1 TM0_2=1", mbr=True)


def search_oracles(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``oracle`` with all methods."""
    from mosesplug.results.choices.oracle_lists import open_oracle_lists, rank_lists
    from mosesplug.results.choices.oracles import METHODS, compare_oracles

    lists, references = _write_lists(directory)
    with open_oracle_lists(lists, references) as given:
        compare_oracles(rank_lists(given.lists, given.scores), given.metric, METHODS, [2, None], 1)


def extract(directory: Path, algorithms: Sequence[str] = ()) -> tuple[list[Path], list[Path]]:
    """Run ``extractor`` on two n-best lists in turn; return what it writes."""
    from mosesplug.moses_tools.distinct_lists import read_distinct
    from mosesplug.moses_tools.extraction import extract as merge_lists
    from mosesplug.moses_tools.extraction import write_extracted
    from mosesplug.moses_tools.extractor_files import read_iteration
    from mosesplug.moses_tools.scoring import Scorer

    lists, references = _write_lists(directory)
    scorer = Scorer.load("BLEU", "", [references])
    features: list[Path] = []
    scores: list[Path] = []
    for number, path in enumerate(lists):
        pairs = zip(features, scores, strict=True)
        earlier = [read_iteration(*pair, threads=1) for pair in pairs]
        merged = merge_lists(earlier, read_distinct([path]), scorer, threads=1)
        features.append(directory / f"run{number}.features.dat")
        scores.append(directory / f"run{number}.scores.dat")
        write_extracted(merged, features[-1], scores[-1])
    return features, scores


def learn_by_mert(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``mert``."""
    import numpy as np

    from mosesplug.metrics import metric
    from mosesplug.moses_tools.extractor_files import load_extractor_files
    from mosesplug.optimizers import Problem, algorithm, no_progress
    from mosesplug.settings.algorithm_options import make_options

    data = load_extractor_files(*extract(directory), threads=1)
    tuner, count = algorithm("mert"), len(data.tuning_set.space)
    problem = Problem(data.tuning_set, metric("BLEU"), None, np.zeros(count), np.ones(count))
    options = make_options(tuner, _MERT)
    tuner.optimize(problem, np.full(count, 0.1), np.random.default_rng(1), options, no_progress)


def learn_by_kbmira(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``kbmira`` on extractor files and on search graphs."""
    import numpy as np

    from formats.weights.any_format import read_weights
    from mosesplug.metrics import metric
    from mosesplug.moses_tools.c_rand import SentenceOrders
    from mosesplug.moses_tools.extractor_files import load_extractor_files
    from mosesplug.moses_tools.mira_inputs import add_start, read_graphs
    from mosesplug.optimizers.batch.mira.kbmira import (
        KbmiraOptions,
        list_learner,
        run_epochs,
        search_learner,
    )
    from mosesplug.optimizers.problem import Problem

    options = KbmiraOptions(epochs=1)
    dense = directory / "weights"
    dense.write_text(_WEIGHTS)
    start = read_weights(dense, ("dense",))
    files = load_extractor_files(*extract(directory), distinct_by="nothing", threads=1)
    tuning_set, initial = add_start(files, start)
    on_lists = list_learner(Problem(tuning_set, metric("BLEU")), initial, options)
    place, references = _write_graphs(directory)
    graphs = read_graphs(str(place), [str(references)], start, 50, lambda number: None)
    initial = np.array([*start.dense, *np.zeros(len(graphs.sparse))])
    on_graphs = search_learner(graphs.search, len(start.dense), initial, options)
    for learner in (on_lists, on_graphs):
        orders = SentenceOrders(1, learner.n_sentences, shuffled=True)
        for _ in run_epochs(learner, orders.next, 1):
            orders.shuffle_for_evaluation()


def sample_pairs_of_pro(directory: Path, algorithms: Sequence[str]) -> None:
    """Run ``pro``."""
    from mosesplug.moses_tools.c_rand import CRand
    from mosesplug.moses_tools.extractor_files import load_extractor_files
    from mosesplug.moses_tools.pro_examples import sample_examples

    files = extract(directory)
    made = load_extractor_files(*files, distinct_by="nothing", threads=1).tuning_set
    for is_smooth in (False, True):
        sample_examples(made, CRand(1).below, with_smooth_penalty=is_smooth)


TASKS: dict[str, Callable[[Path, Sequence[str]], object]] = {
    "score": score_translations,
    "optimize": learn_from_lists,
    "optimize --graphs": learn_from_graphs,
    "tune": tune_on_lists,
    "tune --forest": tune_on_graphs,
    "tune --online": tune_online,
    "forest": search_graphs,
    "mbr": minimize_risk,
    "oracle": search_oracles,
    "extractor": extract,
    "mert": learn_by_mert,
    "kbmira": learn_by_kbmira,
    "pro": sample_pairs_of_pro,
}
"""The function that runs the kernels of each task."""
