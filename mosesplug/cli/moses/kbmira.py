"""``kbmira``: MIRA on extractor files or search graphs, as in Moses' program.

Without shuffling it makes the same updates as Moses' program, to the last bit, if that program
recognizes equal hypotheses. With shuffling, both draw the orders from the C library's generator.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

from mosesplug.cli.moses.arguments import Program, ProgramArguments, Style, run
from mosesplug.cores import usable_cores
from mosesplug.errors import DataError, UsageError
from mosesplug.options import Opt

if TYPE_CHECKING:
    from formats.weights.any_format import WeightFile
    from mosesplug.metrics import Metric
    from mosesplug.moses_tools.c_rand import SentenceOrders
    from mosesplug.moses_tools.extractor_files import ExtractorSet, Iteration
    from mosesplug.optimizers.batch.mira.kbmira import (
        KbmiraOptions,
        MiraEpoch,
        MiraLearner,
        VisitFigures,
    )
    from mosesplug.optimizers.batch.mira.state import MiraDecisions


@dataclass(frozen=True)
class KbmiraArguments(ProgramArguments):
    """The options of ``kbmira``."""

    type: Annotated[
        Literal["nbest", "hypergraph"],
        Opt("kind of input: nbest or hypergraph", short="t", metavar="TYPE"),
    ] = "nbest"
    sctype: Annotated[
        str | None, Opt("the metric (default: that of the statistics)", metavar="METRIC")
    ] = None
    scconfig: Annotated[
        str,
        Opt("metric settings", short="c", metavar="name:value,...", excludes=("type=hypergraph",)),
    ] = ""
    scfile: Annotated[
        tuple[str, ...], Opt("statistics file of an iteration", short="S", metavar="FILE")
    ] = ()
    ffile: Annotated[
        tuple[str, ...], Opt("feature file of an iteration", short="F", metavar="FILE")
    ] = ()
    hgdir: Annotated[str, Opt("hypergraph: directory of the graphs", short="H", metavar="DIR")] = ""
    reference: Annotated[
        tuple[str, ...], Opt("hypergraph: a reference file", short="R", metavar="FILE")
    ] = ()
    random_seed: Annotated[int | None, Opt("random seed (default: from the clock)", short="r")] = (
        None
    )
    output_file: Annotated[
        str | None, Opt("file for the weights (default: stdout)", short="o", metavar="FILE")
    ] = None
    cparam: Annotated[
        float,
        Opt(
            "C, the largest step size; lower for more regularization",
            short="C",
            metavar="C",
            above=0.0,
        ),
    ] = 0.01
    decay: Annotated[
        float,
        Opt(
            "decay of the background at each sentence",
            short="D",
            metavar="D",
            minimum=0.0,
            maximum=1.0,
        ),
    ] = 0.999
    iters: Annotated[int, Opt("number of epochs", short="J", minimum=1)] = 60
    dense_init: Annotated[
        str | None,
        Opt(
            "starting weights: one 'name= value' per line, or numbers on one line (default: 0)",
            short="d",
            metavar="FILE",
        ),
    ] = None
    sparse_init: Annotated[
        str | None,
        Opt(
            "starting weights of sparse features: 'name value'",
            short="s",
            metavar="FILE",
            requires=("dense-init",),
        ),
    ] = None
    streaming: Annotated[bool, Opt("accepted; implies --no-shuffle")] = False
    streaming_out: Annotated[bool, Opt("write the weights to stdout after each sentence")] = False
    no_shuffle: Annotated[bool, Opt("visit the sentences in input order")] = False
    model_bg: Annotated[bool, Opt("add the 1-best instead of the hope to the background")] = False
    verbose: Annotated[bool, Opt("show every update")] = False
    safe_hope: Annotated[bool, Opt("limit the model score's influence on the hope")] = False
    hg_prune: Annotated[int, Opt("hypergraph: edges to keep per reference word", minimum=0)] = 50


PROGRAM = Program(
    "kbmira",
    "Tune weights on extractor files or search graphs by MIRA (Cherry & Foster 2012).",
    KbmiraArguments,
    style=Style.BOOST,
    notes="The result is the weights of the epoch with the best score. mert-moses.pl runs this"
    "\nprogram for --batch-mira.",
)

_DOT, _COUNT = 10, 400
"""Search graphs for each dot, and for each count, of the progress."""

SMALLEST = 1e-8
"""Sparse weights up to this absolute value are not written."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``kbmira`` and exit."""
    run(PROGRAM, _kbmira, arguments)


def _kbmira(arguments: KbmiraArguments) -> None:
    _check(arguments)
    _log(
        f"kbmira with c={arguments.cparam:g} decay={arguments.decay:g} "
        f"no_shuffle={int(arguments.no_shuffle)}\n"
    )
    seed = arguments.random_seed
    if seed is None:
        _log("Initialising random seed from system clock\n")
        seed = int(time.time())
    else:
        _log(f"Initialising random seed to {seed}\n")
    start = _read_start(arguments)

    task = (_graphs if arguments.type == "hypergraph" else _lists)(arguments, start, seed)

    from mosesplug.optimizers.batch.mira.kbmira import run_epochs

    learner, orders = task.learner, task.orders
    if not arguments.streaming_out:
        orders.shuffle_for_evaluation()
        _log(f"Initial BLEU = {learner.score(learner.average()):g}\n")
    visit: Callable[..., MiraDecisions | VisitFigures] = learner.visit
    if arguments.verbose or arguments.streaming_out:
        from mosesplug.cli.moses.kbmira_display import Display

        visit = Display(
            learner,
            task.n_dense,
            named=task.named,
            updates=sys.stderr if arguments.verbose else None,
            weights=sys.stdout if arguments.streaming_out else None,
        ).visit
    best: float | None = None
    for epoch in run_epochs(learner, orders.next, arguments.iters, visit):
        orders.shuffle_for_evaluation()
        _log(
            f"{epoch.updates}/{epoch.sentences} updates, avg loss = {epoch.loss:g}, "
            f"BLEU = {epoch.score:g}\n"
        )
        if best is None or epoch.score > best:
            best = epoch.score
            _write(arguments.output_file, task, epoch)
    if best is not None and best <= 0.0:
        _log("kbmira: no weights score above 0; those written are the first that were found\n")
    _log(f"Best BLEU = {best:g}\n")


@dataclass(frozen=True)
class _Task:
    """A learner on n-best lists or search graphs, with the facts for its output.

    Attributes:
        orders: yields the order of the sentences in each epoch.
        sparse: names of the sparse features.
        named: whether dense weights were given by name.
    """

    learner: MiraLearner
    orders: SentenceOrders
    n_dense: int
    sparse: Sequence[str]
    named: bool


def _lists(arguments: KbmiraArguments, start: WeightFile, seed: int) -> _Task:
    """Return a learner on the hypotheses in extractor files."""
    files = _read_files(arguments)

    from mosesplug.moses_tools.c_rand import SentenceOrders
    from mosesplug.moses_tools.mira_inputs import add_start
    from mosesplug.optimizers.batch.mira.kbmira import list_learner
    from mosesplug.optimizers.problem import Problem

    tuning_set, initial = add_start(files, start)
    learner = list_learner(
        Problem(tuning_set, _metric(arguments, files)), initial, _options(arguments)
    )
    orders = SentenceOrders(
        seed, learner.n_sentences, shuffled=not (arguments.no_shuffle or arguments.streaming)
    )
    _log("." * (learner.n_sentences // 100))
    space = tuning_set.space
    return _Task(learner, orders, space.n_dense, space.sparse, bool(start.show.names))


def _graphs(arguments: KbmiraArguments, start: WeightFile, seed: int) -> _Task:
    """Return a learner on search graphs."""
    _check_names(arguments, start)

    from mosesplug.moses_tools.mira_inputs import read_graphs

    _log("Reading  hypergraphs\n")
    try:
        graphs = read_graphs(
            arguments.hgdir, arguments.reference, start, arguments.hg_prune, _log_graph
        )
    finally:
        # An error message begins on its own line too.
        _log("\n")
    _log("Done\n")

    import numpy as np

    from mosesplug.moses_tools.c_rand import SentenceOrders
    from mosesplug.optimizers.batch.mira.kbmira import search_learner

    n_dense = len(start.dense)
    initial = np.array([*start.dense, *(start.all_sparse.get(name, 0.0) for name in graphs.sparse)])
    learner = search_learner(graphs.search, n_dense, initial, _options(arguments))
    orders = SentenceOrders(seed, learner.n_sentences, shuffled=not arguments.no_shuffle, once=True)
    return _Task(learner, orders, n_dense, graphs.sparse, named=True)


def _log_graph(number: int) -> None:
    _log("." * (number % _DOT == 0) + f" [count={number}]\n" * (number % _COUNT == 0))


def _check(arguments: KbmiraArguments) -> None:
    """Raise UsageError for options that are missing or invalid with search graphs."""
    if arguments.type == "nbest":
        return
    for name, value, what in (
        ("hgdir", arguments.hgdir, "the directory of the search graphs"),
        ("reference", arguments.reference, "a reference"),
        ("dense-init", arguments.dense_init, "dense weights, 'name= value' a line"),
    ):
        if not value:
            raise UsageError(f"--type hypergraph requires --{name}: give {what}")
    if arguments.streaming:
        raise UsageError("--type hypergraph excludes --streaming: use --no-shuffle")
    if arguments.sctype not in (None, "BLEU"):
        raise UsageError(f"--type hypergraph supports only --sctype BLEU, not {arguments.sctype}")


def _check_names(arguments: KbmiraArguments, start: WeightFile) -> None:
    """Raise DataError for starting weights that are no use for search graphs."""
    if not start.value_names:
        raise DataError(
            f"{arguments.dense_init} has no names: search graphs need one 'name= value' per line"
        )
    both = sorted(set(start.value_names) & set(start.all_sparse))
    if both:
        raise DataError(
            f"both {arguments.sparse_init} and {arguments.dense_init} have a weight of {both[0]}"
        )


def _read_start(arguments: KbmiraArguments) -> WeightFile:
    """Read the files of starting weights; without any, there are no weights."""
    from formats.weights.any_format import WeightFile, read_weights

    path = arguments.dense_init
    if path is None:
        return WeightFile("", "dense")
    start = read_weights(path, ("dense", "init.opt", "weights.txt"))
    if arguments.verbose:
        shown = [f"{name} " for name in start.value_names] or [""] * len(start.dense)
        lines_shown = [f"{name}{value:g}\n" for name, value in zip(shown, start.dense, strict=True)]
        _log("".join(["Reading dense features:\n", *lines_shown]))
    if arguments.sparse_init is not None:
        start = start.with_sparse(arguments.sparse_init)
        _log(f"Found {len(start.all_sparse)} initial sparse features\n")
    return start


def _read_files(arguments: KbmiraArguments) -> ExtractorSet:
    """Read the files of all iterations in other processes.

    Meanwhile this process imports modules.

    The processes start before the large imports: a small process forks in a millisecond, and
    parsing does not wait for this process' interpreter.
    """
    from concurrent.futures import ThreadPoolExecutor

    from mosesplug.tuning.parallel.ordered_map import start_in_order

    pairs = list(zip(arguments.ffile, arguments.scfile, strict=False))
    with (
        start_in_order(partial(_read_pair, pairs), len(pairs), usable_cores()) as read,
        ThreadPoolExecutor(1) as receiver,
    ):
        iterations = receiver.submit(list, read)
        import mosesplug.optimizers.batch.mira.kbmira  # noqa: F401
        from mosesplug.kernels import load_compiler
        from mosesplug.moses_tools.extractor_files import join, pair_files

        pair_files(arguments.ffile, arguments.scfile)
        load_compiler()
        # The learner ignores duplicate hypotheses itself.
        return join(iterations.result(), distinct_by="nothing")


def _read_pair(pairs: Sequence[tuple[str, str]], number: int) -> Iteration:
    from mosesplug.moses_tools.extractor_files import read_iteration

    return read_iteration(*pairs[number], threads=1)


def _options(arguments: KbmiraArguments) -> KbmiraOptions:
    """Return the algorithm's settings; this program orders the sentences itself."""
    from mosesplug.optimizers.batch.mira.kbmira import KbmiraOptions

    return KbmiraOptions(
        epochs=arguments.iters,
        step_cap=arguments.cparam,
        decay=arguments.decay,
        background="model" if arguments.model_bg else "hope",
        safe_hope=arguments.safe_hope,
    )


def _metric(arguments: KbmiraArguments, files: ExtractorSet) -> Metric:
    """Return the metric, after a check that the statistics belong to it."""
    from mosesplug.metrics import metric
    from mosesplug.moses_tools.extractor_files import require_metric

    scorer = metric(arguments.sctype or files.metric, arguments.scconfig)
    require_metric(files, scorer, arguments.scfile[0])
    return scorer


def _write(path: str | None, task: _Task, epoch: MiraEpoch) -> None:
    """Write weights for mert-moses.pl: dense ``F0 value``, sparse ``name value``.

    This replaces the weights of an earlier epoch.
    """
    from formats.text import write_atomic

    if not epoch.weights.any():
        raise DataError("all weights became zero; start from other weights (--dense-init)")
    n_dense = task.n_dense
    values = epoch.weights.tolist()
    lines = [f"F{number} {value:g}\n" for number, value in enumerate(values[:n_dense])]
    lines += [
        f"{name} {value:g}\n"
        for name, value in zip(task.sparse, values[n_dense:], strict=True)
        if abs(value) > SMALLEST
    ]
    text = "".join(lines).encode("utf-8", "surrogateescape")
    if path is None:
        sys.stdout.flush()  # weights of --streaming-out come first
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
    else:
        write_atomic(path, text)


def _log(text: str) -> None:
    """Write to stderr, which mert-moses.pl logs."""
    print(text, end="", file=sys.stderr, flush=True)
