"""All optimizers by name. To add one, write its module and add one line here.

Other packages, and ``mosesplug.extras``, add theirs by entry points of ``mosesplug.algorithms``.

The command line, the conformance tests and the benchmarks take their algorithms from here. A module
is imported only when one of its algorithms is requested, so that a program that runs one algorithm
starts fast.
"""

from __future__ import annotations

import copyreg
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from mosesplug.candidates import GRAPH_ANSWERS, SHARD_ANSWERS, Question, require_local
from mosesplug.errors import Message, UsageError, count_noun, suggest
from mosesplug.optimizers.costs import NEEDS_SOURCE
from mosesplug.optimizers.online.options import OnlineOptions
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    activate_sparse,
    check_weights,
    no_progress,
)
from mosesplug.optimizers.selection import FeatureSelection
from mosesplug.options import options_by_field
from mosesplug.plugins import ALGORITHMS, bundled_names, load_plugin, load_plugins, plugin_names

if TYPE_CHECKING:
    from mosesplug.metrics.protocol import Metric
    from mosesplug.optimizers.online.learner import Learner

_TUNES_SPARSE = "kbmira"
"""The algorithm that messages name to tune sparse features."""


@dataclass(frozen=True)
class Algorithm:
    """An optimizer, its settings, and its possible inputs.

    The module of an algorithm lists its entries in ``ALGORITHMS``; ``registry`` names the module.

    Attributes:
        name: the value of ``--algorithm``.
        family: the group that ``mosesplug algorithms`` lists it in.
        summary: one sentence of at most 60 characters.
        source: the paper.
        options: frozen dataclass of its settings. Every field has a default, and is
            ``Annotated`` with an ``Opt`` that has a source.
        optimize: ``(problem, initial, rng, options, progress) -> Solution``. The function gets a
            problem and weights that ``_prepare`` has checked, whoever calls it.
        learner: makes an online learner from the options; None for a batch optimizer.
        asks: the questions that it asks of hypotheses. It can learn from all that answer them.
        restarts: whether it also starts from random points and from weights of earlier iterations.
        needs_bleu: whether BLEU is the only metric that it can tune.
        tunes_sparse: whether it tunes sparse features unless told which features are active.
        order_matters: whether its random choices depend on the order of sentences, so that
            another order gives other weights. (Where False, only rounding differs.)
        keeps_bounds: whether its result is the best that it finds inside the problem's bounds;
            otherwise it refuses bounds.
        weighs_sentences: whether it multiplies the loss of a sentence, or its statistics, by the
            weight of the sentence; otherwise it refuses weights of sentences.
        window: how many earlier iterations a run learns from besides the newest, unless a setting
            says it; -1: all.
        tune_options: settings that ``mosesplug tune`` gives it, unless they are given.
        tune_options_with: the condition for that, such as ``method=powell``; None: always.
    """

    name: str
    family: str
    summary: str
    source: str
    options: type[Any]
    optimize: Callable[..., Solution]
    learner: Callable[[Any], Learner] | None = None
    asks: frozenset[Question] = frozenset({"lists"})
    restarts: bool = False
    needs_bleu: bool = False
    tunes_sparse: bool = True
    order_matters: bool = False
    keeps_bounds: bool = False
    weighs_sentences: bool = False
    window: int = -1
    tune_options: Mapping[str, object] = field(default_factory=dict)
    tune_options_with: str | None = None

    def __post_init__(self) -> None:
        own: Callable[..., Solution] = inspect.unwrap(self.optimize)

        @wraps(own)
        def optimize(
            problem: Problem,
            initial: NDArray[np.float64],
            rng: np.random.Generator,
            options: Any,
            progress: Progress = no_progress,
        ) -> Solution:
            return own(*_prepare(self, problem, initial, options), rng, options, progress)

        object.__setattr__(self, "optimize", optimize)

    @property
    def graphs(self) -> bool:
        """Whether it can learn from search graphs."""
        return self.asks <= GRAPH_ANSWERS

    @property
    def maps_shards(self) -> bool:
        """Whether it is a batch optimizer whose work the shards of lists can share."""
        return self.asks <= SHARD_ANSWERS

    def bind(self, options: object) -> Optimizer:
        """Return the algorithm with its settings, an instance of ``self.options``."""
        return Optimizer(self, options)

    def explain_untuned(self, count: int) -> str | None:
        """Return a note that sparse features are not tuned; None if they are.

        Args:
            count: number of sparse features, none of which is active.
        """
        if self.tunes_sparse or not count:
            return None
        features = count_noun(count, "sparse feature")
        return Message(
            f"{self.name} tunes dense features only: the weights of {features} stay as they are. To"
            f" tune them, use {{--algorithm}} {_TUNES_SPARSE}, or another of mosesplug algorithms"
        )

    def require_sparse(self, option: str, selection: FeatureSelection) -> None:
        """Check that it tunes sparse features, or is told which to tune.

        Args:
            option: what makes or chooses sparse features, for the message.

        Raises:
            UsageError: these features would keep their weights.
        """
        if not self.tunes_sparse and selection.active is None:
            raise UsageError(
                f"{option} would have no effect: {self.name} tunes dense features only, so sparse "
                f"features would keep their weights. Use {{--algorithm}} {_TUNES_SPARSE}, or "
                "another algorithm that tunes sparse features: mosesplug algorithms lists them"
            )

    def require_bounds(self) -> None:
        """Check that the algorithm keeps bounds of weights.

        Raises:
            UsageError: it does not; the message lists those that do.
        """
        if not self.keeps_bounds:
            able = ", ".join(row.name for row in algorithms().values() if row.keeps_bounds)
            raise UsageError(f"{self.name} cannot keep bounds of weights; choose one of {able}")

    def can_learn_from_graphs(self, metric: Metric) -> bool:
        """Return whether it learns from search graphs with a metric."""
        return self.graphs and (self.asks == {"lines"} or metric.can_search_graphs)


def _prepare(
    algorithm: Algorithm, problem: Problem, initial: NDArray[np.float64], options: object
) -> tuple[Problem, NDArray[np.float64]]:
    """Return the problem and the weights that an algorithm starts from.

    Raises:
        UsageError: it cannot tune the metric, keep the bounds of the problem, or weight sentences.
        OptimizerError: see ``check_weights``.
    """
    if algorithm.needs_bleu and not problem.metric.has_bleu_statistics:
        raise UsageError(
            f"{algorithm.name} requires the metric BLEU, not {problem.metric.name}; choose BLEU, "
            "or the algorithm risk"
        )
    if problem.bounds is not None:
        algorithm.require_bounds()
    if problem.tuning_set.sentence_weights is not None:
        algorithm.bind(options).require_sentence_weights()
        if problem.source is None:
            problem = replace(problem, tuning_set=problem.tuning_set.drop_weightless())
    if algorithm.tunes_sparse:
        problem = activate_sparse(problem)
    return problem, check_weights(problem, initial)


@dataclass(frozen=True)
class Optimizer:
    """An algorithm with its settings.

    It can be pickled: the algorithm travels by its name.

    Attributes:
        algorithm: from the registry.
        options: an instance of ``algorithm.options``.
    """

    algorithm: Algorithm
    options: object

    @property
    def name(self) -> str:
        """Name of the algorithm."""
        return self.algorithm.name

    @property
    def values(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(cast(Any, self.options))

    def optimize(
        self,
        problem: Problem,
        initial: NDArray[np.float64],
        rng: np.random.Generator,
        progress: Progress = no_progress,
    ) -> Solution:
        """Optimize weights from ``initial``, float64 ``[n_features]``.

        Raises:
            UsageError: the problem has bounds that the algorithm cannot keep.
            OptimizerError: no usable weights were found.
        """
        return self.algorithm.optimize(problem, initial, rng, self.options, progress)

    def search_nearby(self) -> Optimizer | None:
        """Return the algorithm with a short polish and no restarts; None if it has none."""
        options = cast(Any, self.options)
        known = {option.name for option in fields(options)}
        if "restarts" not in known:
            return None
        settings = {"restarts": 0}
        if "polish" in known:
            settings["polish"] = min(SHORT_POLISH, options.polish)
        return replace(self, options=replace(options, **settings))

    @property
    def is_online(self) -> bool:
        """Whether the algorithm learns from mini-batches."""
        return isinstance(self.options, OnlineOptions)

    @property
    def online(self) -> OnlineOptions:
        """The settings that all online learners share.

        Raises:
            UsageError: the algorithm is a batch optimizer.
        """
        if not isinstance(self.options, OnlineOptions):
            raise UsageError(f"{self.name} does not learn from mini-batches")
        return self.options

    def require_lists(self) -> None:
        """Check that its settings can be used without search graphs.

        Raises:
            UsageError: they ask for updates towards references in search graphs.
        """
        require_local(getattr(self.options, "oracles", "local"))

    def require_sentence_weights(self) -> None:
        """Check that the algorithm honours weights of sentences, with these settings.

        Raises:
            UsageError: it does not.
        """
        if not self.algorithm.weighs_sentences:
            able = ", ".join(row.name for row in algorithms().values() if row.weighs_sentences)
            raise UsageError(f"{self.name} cannot weight sentences; choose one of {able}")
        if getattr(self.options, "exact_dual", False):
            raise UsageError(
                f"{self.name} cannot weight sentences with exact_dual, which bounds the sum of all"
                " multipliers of a mini-batch (Watanabe 2012, eq. 14), so that a sentence that is"
                " repeated changes nothing: leave exact_dual out"
            )

    @property
    def needs_source(self) -> bool:
        """Whether its settings need the lengths of the source sentences."""
        return getattr(self.options, "cost_unit", "sentence") == "source"

    def require_source(self, *, is_known: bool) -> None:
        """Check that lengths of source sentences are known if its settings need them.

        Raises:
            UsageError: they are not.
        """
        if self.needs_source and not is_known:
            raise UsageError(f"{self.name}: {NEEDS_SOURCE}")

    def learner(self) -> Learner:
        """Return a new online learner.

        Raises:
            UsageError: the algorithm is a batch optimizer, or its settings cannot be used.
        """
        if self.algorithm.learner is None:
            raise UsageError(
                f"{self.name} does not learn from mini-batches, so it can have no shards"
            )
        return self.algorithm.learner(self.options)


SHORT_POLISH = 4
"""Failed perturbations that end a search near good weights."""

_MODULES = {
    "mert": "batch.mert.mert",
    "kbmira": "batch.mira.kbmira",
    "pro": "batch.ranking.pro",
    "pro+mert": "batch.ranking.pro",
    "rank-all": "batch.ranking.whole_lists",
    "cross-entropy": "batch.ranking.whole_lists",
    "softmax": "batch.expected.algorithms",
    "risk": "batch.expected.algorithms",
    "linear-bleu": "batch.expected.algorithms",
    "xbleu": "batch.expected.algorithms",
    "margin": "batch.margin.margin",
    "cutting-plane": "batch.margin.margin",
    "rampion": "batch.margin.rampion",
    "mse": "batch.margin.regression",
    "perceptron": "online.margins",
    "mira": "online.margins",
    "arow": "online.arow",
    "rm-pa": "online.margins",
    "rm-cp": "online.margins",
    "oro": "online.oro.learners",
    "oro-softmax": "online.oro.learners",
    "o-oro": "online.oro.learners",
    "o-oro-softmax": "online.oro.learners",
    "rank-mira": "online.oro.learners",
    "pegasos": "online.descent",
    "sgd": "online.descent",
    "adagrad": "online.descent",
    "rda": "online.dual_averaging",
}
"""The module below ``mosesplug.optimizers`` that has the algorithm in its ``ALGORITHMS``."""


class _Algorithms(Mapping[str, Algorithm]):
    def __getitem__(self, name: str) -> Algorithm:
        if name not in _MODULES:
            return self._plugins()[name]
        module = import_module(f"mosesplug.optimizers.{_MODULES[name]}")
        entries: tuple[Algorithm, ...] = module.ALGORITHMS
        return next(entry for entry in entries if entry.name == name)

    def __iter__(self) -> Iterator[str]:
        yield from _MODULES
        yield from self._plugins()

    def __len__(self) -> int:
        return len(_MODULES) + len(self._plugins())

    def __contains__(self, name: object) -> bool:
        return name in _MODULES or name in self._plugins()

    @staticmethod
    def _plugins() -> dict[str, Algorithm]:
        """Return the plug-ins that can be used; warnings name the others."""
        loaded = load_plugins(ALGORITHMS, Algorithm, _MODULES, check_options)
        return {entry.name: plugin for entry, plugin, _ in loaded if plugin is not None}


def algorithms() -> Mapping[str, Algorithm]:
    """Return all optimizers by name.

    Reading only names imports no optimizer except those of plug-ins.
    """
    return _Algorithms()


def built_in_algorithms() -> tuple[str, ...]:
    """Return the names of all optimizers without those of other packages."""
    return (*_MODULES, *bundled_names(ALGORITHMS))


def algorithm(name: str) -> Algorithm:
    """Return the optimizer of that name.

    Raises:
        UsageError: unknown name; the message lists the known ones, and suggests one. Or a plug-in
            of this name cannot be used.
    """
    if name in _MODULES:
        return algorithms()[name]
    if (plugin := load_plugin(ALGORITHMS, name, Algorithm)) is not None:
        check_options(plugin)
        return plugin
    known = sorted([*_MODULES, *plugin_names(ALGORITHMS, _MODULES)])
    raise UsageError(f"unknown algorithm {name!r}; known: {', '.join(known)}{suggest(name, known)}")


def check_options(plugin: Algorithm) -> None:
    """Reject a plug-in whose settings are not declared as those of mosesplug are.

    Raises:
        UsageError: its options are no dataclass, or a field has no ``Opt``.
    """
    options: Any = plugin.options
    if isinstance(options, type) and is_dataclass(options):
        declared = options_by_field(options)
        wrong = [option.name for option in fields(options) if option.name not in declared]
    else:
        wrong = ["options"]
    if wrong:
        raise UsageError(
            f"the plug-in algorithm {plugin.name} must declare its settings as a dataclass whose"
            f" fields are Annotated[TYPE, mosesplug.options.Opt(...)], but {', '.join(wrong)} is"
            " not. Repair or uninstall its package"
        )


def _by_name(entry: Algorithm) -> tuple[Callable[[str], Algorithm], tuple[str]]:
    return algorithm, (entry.name,)


# Its functions cannot be pickled: a worker looks the algorithm up in its own registry.
copyreg.pickle(Algorithm, _by_name)
