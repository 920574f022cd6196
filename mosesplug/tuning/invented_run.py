"""Tune on a few invented sentences, so that the kernels of a run are compiled.

All steps of the run work on sentences with its features and random values. Its decoder is not
called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.graphs.any_graph import read_graph
from formats.graphs.hypergraph import Edge, GraphColumns, write_hypergraph
from formats.nbest.block import NBestList
from mosesplug.decoders.batch import BatchDecoder, ModelWeights, parse_lists
from mosesplug.decoders.protocol import DecodedInput, Decoder
from mosesplug.features import FeatureSpace
from mosesplug.forest.scanner import scan_graph
from mosesplug.metrics.outside import Formula, Question
from mosesplug.metrics.scored import change_scored
from mosesplug.optimizers import Optimizer
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.context import Context, RunData
from mosesplug.tuning.graphs.features import read_configured_features
from mosesplug.tuning.graphs.forest import use_own_graphs
from mosesplug.tuning.setup import make_task
from mosesplug.tuning.workdir.workspace import Workspace

RunLoop = Callable[[Context], object]
"""Runs all iterations."""

_TEXTS = ("a b c d e f g", "a b c x e f g h", "b c d e f a", "g f e d c b a")
_SENTENCES = 6
LINES = f"{_TEXTS[0]}\n" * _SENTENCES
"""The references, which are the source sentences, too."""

_ITERATIONS = 2
_MAP_BYTES = 1 << 24


def tune_invented_sentences(
    data: RunData,
    config: Path,
    optimizer: Optimizer,
    directory: Path,
    run: RunLoop,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Run two iterations on invented sentences, in this thread.

    Args:
        data: the data of the run. Shards, held-out sets, domains and weights of sentences are
            ignored.
        check: called at every step; its exception ends the run.
    """
    count = max(1, data.references.n_references)
    for name in ("input", *(f"references{number}" for number in range(count))):
        (directory / name).write_text(LINES)
    configuration = _shorten(data.configuration, directory)
    workspace = Workspace(directory, configuration.decoding.nbest)
    task = make_task(configuration, workspace, config, _SENTENCES, lambda event: check())
    decoder = _InventedDecoder(data.show, data.space, config, workspace)
    with NBestStore.open(workspace.store, writable=True, map_size=_MAP_BYTES) as store:
        context = Context(
            configuration,
            data.show,
            data.start,
            configuration.metric.prepare([[_TEXTS[0].encode()] * _SENTENCES] * count),
            data.seed,
            data.fixed_weights,
            workspace=workspace,
            config=config,
            store=store,
            watch=task.watch,
            decoder=use_own_graphs(decoder, task, configuration, store, workspace.store),
            optimizer=_with_few_restarts(optimizer),
        )
        run(context)


def _shorten(configuration: Configuration, directory: Path) -> Configuration:
    """Return the settings of two iterations that need one thread and no other data."""
    return replace(
        configuration,
        metric=change_scored(
            configuration.metric,
            lambda metric: replace(metric, scorer=_InventedScorer(metric.formula), source=None),
        ),
        input=directory / "input",
        references=directory / "references",
        working_directory=directory,
        optimization=replace(configuration.optimization, threads=1, sharding=None),
        maximum_iterations=_ITERATIONS,
        skip_decoder=False,
        keep_extractor_files=False,
        held_out=None,
        monitors=(),
        report_metrics=(),
        domains=None,
        sentence_weights=None,
        strict=False,
    )


@dataclass(frozen=True)
class _InventedScorer:
    """A ``TextScorer`` that asks no command: a score is the length of the text."""

    formula: Formula
    n_asked: int = 0
    n_known: int = 0
    reads_references: bool = True

    def score(self, questions: Sequence[Question]) -> NDArray[np.float64]:
        """Return the length of each text in every column, which all formulas take."""
        lengths = np.array([1.0 + len(question.hypothesis) for question in questions])
        return np.repeat(lengths[:, None], self.formula.width, axis=1)


def _with_few_restarts(optimizer: Optimizer) -> Optimizer:
    """Return the optimizer with one restart, if it has any."""
    if optimizer.values.get("restarts", 0) < 2:
        return optimizer
    options: Any = optimizer.options
    return replace(optimizer, options=replace(options, restarts=1))


@dataclass(frozen=True)
class _InventedDecoder(Decoder, BatchDecoder):
    """A ``Decoder``, also of mini-batches, that translates nothing.

    Attributes:
        space: the dense features of the run.
        config: the real decoder's configuration.
    """

    space: FeatureSpace
    config: Path
    workspace: Workspace

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Write n-best lists with random values; see ``Decoder.nbest_lists``."""
        path, values = self.workspace.nbest(iteration), np.random.default_rng(iteration)
        path.write_bytes(b"".join(self._lines(number, values) for number in range(_SENTENCES)))
        return self._decoded(iteration, path)

    def search_graphs(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Write search graphs with random values; see ``Decoder.search_graphs``."""
        directory = self.workspace.graphs
        fixed = read_configured_features(self.config).fixed_weights
        names = (*GraphColumns(self.space.groups, fixed=fixed).names, *fixed)
        write_invented_graphs(directory, names, self.features.sparse, seed=iteration)
        return self._decoded(iteration, self.workspace.packed_nbest(iteration), directory)

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """Return n-best lists with random values; see ``BatchDecoder.decode``."""
        numbers = [number for number, _ in sentences]
        values = np.random.default_rng(numbers)
        text = b"".join(self._lines(place, values) for place in range(len(numbers)))
        return parse_lists(text, numbers, weights.columns, "an invented list")

    def serve(
        self, sentences: Sequence[bytes], weights: ModelWeights
    ) -> nullcontext[_InventedDecoder]:
        """Return this decoder."""
        return nullcontext(self)

    def close(self) -> None:
        """Do nothing."""

    def _decoded(self, iteration: int, path: Path, graphs: Path | None = None) -> DecodedInput:
        out = self.workspace.run(iteration, "out")
        return DecodedInput(path, (), out, out, 0.0, graphs)

    def _lines(self, sentence: int, values: np.random.Generator) -> bytes:
        """Return the n-best list of a sentence."""
        lines = []
        for text in _TEXTS:
            fields = [
                f"{name}= {' '.join(f'{value:.3f}' for value in values.normal(size=width))}"
                for name, width in self.space.groups
            ]
            fields += [f"{name}_x= {values.normal():.3f}" for name in self.features.sparse]
            lines.append(f"{sentence} ||| {text} ||| {' '.join(fields)} ||| -1\n")
        return "".join(lines).encode()


def write_invented_graphs(
    directory: Path, names: Sequence[str], sparse: Sequence[str] = (), *, seed: int = 1
) -> None:
    """Write a search graph with random values for each invented sentence.

    Each word of a text has another one beside it. The graphs are too small for the scanner, which
    is for large ones: it is called once.

    Args:
        names: dense features, as search graphs name them.
    """
    values = np.random.default_rng(seed)

    def edge(tail: int, word: str) -> Edge:
        others = tuple((f"{name}_x", float(values.normal())) for name in sparse)
        dense = tuple(values.normal(size=len(names)).tolist())
        return Edge((tail, word.encode()), tail + 1, dense, others)

    directory.mkdir(exist_ok=True)
    first, *_, last = _TEXTS
    for number in range(_SENTENCES):
        nodes = [[Edge((b"<s>",), 0)]]
        for tail, words in enumerate(zip(first.split(), last.split(), strict=True)):
            nodes.append([edge(tail, word) for word in words])
        nodes.append([Edge((len(nodes) - 1, b"</s>"), len(nodes))])
        write_hypergraph(directory / f"{number}.gz", names, nodes)
    read_graph(directory / "0.gz", "hypergraph", scan=scan_graph)
