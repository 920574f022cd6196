"""Tune weights for each domain of a mixed tuning set: decode and learn with them.

The deviations of a domain's weights travel as sparse weights, ``FEATURE@LABEL``, in the store and
in the files of the run. Each domain's sentences are decoded with its own sums of weights.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.text import atomic_write, open_text, read_lines, write_atomic
from formats.weights.files import format_sparse
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.protocol import DecodedInput, Decoder, DecodingTask
from mosesplug.decoders.run_files import RunFiles
from mosesplug.features import FeatureSpace
from mosesplug.optimizers import Problem, Solution
from mosesplug.optimizers.domains import MARK, DomainSpace, add_copies, count_domains
from mosesplug.settings.sentences.domains import Domains
from mosesplug.tuning.weights import Weights


def list_domain_weights(
    weights: Weights, space: FeatureSpace, names: Sequence[str]
) -> dict[str | None, Weights]:
    """Return the weights of each domain, and the shared ones by None.

    Args:
        weights: shared weights, and deviations ``FEATURE@LABEL`` among the sparse ones.
    """
    endings = tuple(f"{MARK}{name}" for name in names)
    shared = {name: w for name, w in weights.sparse.items() if not name.endswith(endings)}
    by_domain: dict[str | None, Weights] = {None: Weights(weights.dense, shared)}
    for name, ending in zip(names, endings, strict=True):
        own = {
            feature.removesuffix(ending): weight
            for feature, weight in weights.sparse.items()
            if feature.endswith(ending)
        }
        pairs = zip(space.labels, weights.dense, strict=True)
        dense = tuple(weight + own.pop(label, 0.0) for label, weight in pairs)
        sums = {feature: shared.get(feature, 0.0) + weight for feature, weight in own.items()}
        by_domain[name] = Weights(dense, {**shared, **sums})
    return by_domain


@dataclass(frozen=True)
class DomainLearning:
    """Learns shared weights and deviations from the lists of a run.

    Attributes:
        domains: which domain each source sentence belongs to.
        sparse: whether the algorithm tunes sparse features.
    """

    domains: Domains
    sparse: bool

    @property
    def text(self) -> str:
        """Labels, and a checksum of each sentence's label; ``--continue`` compares them."""
        code = zlib.crc32(self.domains.of_sentence.tobytes())
        return f"{' '.join(self.domains.names)} {code:08x}"

    def extend(self, problem: Problem) -> tuple[Problem, DomainSpace]:
        """Return the problem with copies of its features for each domain."""
        return add_copies(problem, self.domains.names, self._numbers(problem), sparse=self.sparse)

    def center(self, problem: Problem, space: DomainSpace, solution: Solution) -> Solution:
        """Return the solution with shared weights that are the mean of the domains'."""
        counts = count_domains(len(self.domains.names), self._numbers(problem), problem.tuning_set)
        return replace(solution, weights=space.center(solution.weights, counts))

    def _numbers(self, problem: Problem) -> NDArray[np.int64]:
        return self.domains.take(problem.tuning_set.sentence_ids)


@dataclass(frozen=True)
class _PartFiles(RunFiles):
    """Files of one domain's decoding: ``run1.news.best100.out``.

    In a run without domains, this is ``run1.best100.out``.
    """

    part: str

    def run(self, iteration: int, what: str) -> Path:
        return super().run(iteration, f"{self.part}.{what}")


@dataclass(frozen=True)
class DomainDecoder(Decoder):
    """A ``Decoder`` that decodes the sentences of each domain with its weights.

    Attributes:
        program: decodes the parts of the input.
        domains: which domain each source sentence belongs to.
    """

    task: DecodingTask
    program: Decoder
    domains: Domains

    no_graphs = "{--domains} learns from n-best lists, not from search graphs"
    no_batches = "{--domains} decodes the whole input: leave out {--online}"

    def nbest_lists(self, iteration: int, weights: ModelWeights) -> DecodedInput:
        """Decode the parts of the input one after the other, and merge their lists.

        Raises:
            DecoderError: the program failed, or wrote no list.
        """
        files = self.task.files
        space = FeatureSpace.of_names(self.features.names)
        dense = [v for group in weights.groups for v in group.values if v is not None]
        every = list_domain_weights(
            Weights(tuple(dense), weights.sparse), space, self.domains.names
        )
        parts = []
        for number, name in enumerate(self.domains.names):
            ids, own = np.flatnonzero(self.domains.of_sentence == number), every[name]
            task = self._make_part(name, ids)
            path = task.files.run(iteration, "sparse-weights")
            path.unlink(missing_ok=True)
            if own.sparse:
                write_atomic(path, format_sparse(own.sparse))
            model = ModelWeights(self.features.with_values(own.dense).groups, own.sparse)
            parts.append((ids, self.program.with_task(task).nbest_lists(iteration, model)))
        packed = files.packed_nbest(iteration)
        _merge_lists(packed, parts)
        out = files.run(iteration, "out")
        _merge_lines(out, [(ids, decoded.stdout) for ids, decoded in parts])
        for _, decoded in parts:
            decoded.path.unlink()
        last = parts[-1][1]
        seconds = sum(decoded.seconds for _, decoded in parts)
        return DecodedInput(packed, last.command, out, last.stderr, seconds)

    def _make_part(self, name: str, ids: NDArray[np.int64]) -> DecodingTask:
        """Return the decoding of a domain's sentences; write them to a file."""
        task = self.task
        source = task.files.directory / f"domain.{name}.input"
        lines = read_lines(task.source)
        write_atomic(source, b"".join(lines[number] + b"\n" for number in ids.tolist()))
        references = task.references
        if references is not None:
            references = [[lines[number] for number in ids.tolist()] for lines in references]
        return replace(
            task,
            input=source,
            files=_PartFiles(task.files.directory, task.files.nbest_size, name),
            n_sentences=len(ids),
            references=references,
            parsed=None,  # sentences of a part have other numbers
        )

    def close(self) -> None:
        """Release what the program holds."""
        self.program.close()


def _merge_lists(target: Path, parts: Sequence[tuple[NDArray[np.int64], DecodedInput]]) -> None:
    """Merge n-best lists of parts by sentence, with the ids of the whole input.

    Raises:
        DecoderError: a list has a line without the id of a sentence of its part.
    """
    with ExitStack() as stack:
        streams = [
            _renumber(stack.enter_context(open_text(decoded.path)), ids.tolist(), decoded)
            for ids, decoded in parts
        ]
        with atomic_write(target, compress="gz") as file:
            file.writelines(line for _, line in heapq.merge(*streams, key=lambda entry: entry[0]))


def _renumber(
    lines: Iterator[bytes], ids: Sequence[int], decoded: DecodedInput
) -> Iterator[tuple[int, bytes]]:
    for place, line in enumerate(lines, start=1):
        number, bars, rest = line.partition(b"|||")
        if not line.strip():
            continue
        try:
            part = int(number)
        except ValueError:
            part = -1
        if not 0 <= part < len(ids):
            raise decoded.failure(
                f"{decoded.path}:{place}: the decoder wrote a line without the id of a sentence of"
                f" its part of the input, which has {len(ids)}, counted from 0"
            )
        sentence = ids[part]
        yield sentence, b"%d %s%s" % (sentence, bars, rest)


def _merge_lines(target: Path, parts: Sequence[tuple[NDArray[np.int64], Path]]) -> None:
    """Merge translations of parts in the order of the input."""
    lines: dict[int, bytes] = {}
    for ids, path in parts:
        lines |= dict(zip(ids.tolist(), read_lines(path), strict=False))
    write_atomic(target, b"".join(lines[number] + b"\n" for number in sorted(lines)))
