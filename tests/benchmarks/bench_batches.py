"""Random batches of a long run: from the store, merged, and from its text files by offset.

The run is made up: 1,000 sentences, 25 iterations of 100-best lists, 14 dense features, BLEU. Half
of the second list is new to its sentence, and of each later one 0.92 of that of the one before it
(six hundred hypotheses a sentence at the end); the rest repeats earlier ones.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.nbest.block import NBestList, parse_block
from formats.nbest.entry import Layout, Place
from formats.nbest.files import read_nbest, read_nbest_blocks
from mosesplug.metrics import metric
from mosesplug.metrics.protocol import PreparedReferences
from mosesplug.store import IngestReport, NBestStore

N_SENTENCES, N_ITERATIONS, N_BEST, BATCH = 1000, 25, 100, 16
GROUPS = (("Lex0", 6), ("Distortion0", 1), ("LM0", 1), ("WordPenalty0", 1), ("TM0", 5))
BLEU = metric("BLEU", "case:true")


@dataclass(frozen=True)
class Run:
    """A tuning run in both forms.

    Attributes:
        lists: its n-best lists as text, one an iteration.
        offsets: int64 ``[N_ITERATIONS, N_SENTENCES + 1]``; where each sentence begins there.
        store: the same, merged.
        references: of the sentences.
    """

    lists: list[Path]
    offsets: NDArray[np.int64]
    store: Path
    references: PreparedReferences


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Text lists, where their sentences begin, and the store made of them: 1.2 GB, then removed."""
    directory = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    words = np.array([f"word{k}" for k in range(3000)])
    sentences = [rng.choice(words, rng.integers(6, 20)) for _ in range(N_SENTENCES)]
    references = BLEU.prepare([[" ".join(sentence).encode() for sentence in sentences]])
    lists = [directory / f"run{i + 1}.best100.out" for i in range(N_ITERATIONS)]
    offsets = np.zeros((N_ITERATIONS, N_SENTENCES + 1), dtype=np.int64)
    streams = [path.open("wb") for path in lists]
    for number, sentence in enumerate(sentences):
        for i, lines in enumerate(_lists_of(number, sentence, words, rng)):
            offsets[i, number + 1] = offsets[i, number] + streams[i].write(b"".join(lines))
    for stream in streams:
        stream.close()
    with NBestStore.open(directory / "store", writable=True) as store:
        for iteration, path in enumerate(lists, start=1):
            store.add_iteration(
                iteration, read_nbest_blocks(path), metric=BLEU, references=references,
                n_sentences=N_SENTENCES, record={}, threads=2,
            )  # fmt: skip
    yield Run(lists, offsets, directory / "store", references)
    shutil.rmtree(directory)


def _lists_of(
    number: int, sentence: NDArray[np.str_], words: NDArray[np.str_], rng: np.random.Generator
) -> list[list[bytes]]:
    """The lines of one sentence in each iteration."""
    n_new = [N_BEST, *(round(50 * 0.92**i) for i in range(N_ITERATIONS - 1))]
    n = sum(n_new)
    kept = rng.random((n, len(sentence))) > 0.1 + 0.4 * rng.random((n, 1))
    texts = np.where(kept, sentence, rng.choice(words, (n, len(sentence))))
    values = rng.standard_normal((n, 14)) * 3.0
    pool = [_line(number, text, row) for text, row in zip(texts, values, strict=True)]
    lists, have = [], 0
    for new in n_new:
        old = rng.choice(have, N_BEST - new, replace=False) if have else np.zeros(0, np.int64)
        chosen = rng.permutation(np.concatenate([old, np.arange(have, have + new)]))
        lists.append([pool[k] for k in chosen])
        have += new
    return lists


def _line(sentence: int, text: NDArray[np.str_], values: NDArray[np.float64]) -> bytes:
    spelled = [f"{value:g}" for value in values]
    fields, first = [], 0
    for name, width in GROUPS:
        fields.append(f"{name}= " + " ".join(spelled[first : first + width]))
        first += width
    line = f"{sentence} ||| {' '.join(text)} ||| {' '.join(fields)} ||| {values.sum():g}\n"
    return line.encode()


def batches_of(rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """The sentences of batch after batch."""
    while True:
        yield rng.choice(N_SENTENCES, BATCH, replace=False)


def report(benchmark: Any, what: str) -> None:
    """Print the result as batches per second."""
    if (stats := benchmark.stats) is not None:
        print(f"\n{what}: {1.0 / stats['median']:,.0f} batches of {BATCH} sentences a second")


def test_cached(benchmark: Any, run: Run) -> None:
    """Merged batches, all sentences kept in memory."""
    ids = batches_of(np.random.default_rng(1))
    with NBestStore.open(run.store) as store:
        merged = store.merge_batches()
        assert merged.batch(np.arange(N_SENTENCES)).n_hyps > 500 * N_SENTENCES
        assert benchmark.pedantic(lambda: merged.batch(next(ids)), rounds=3000).n_sentences == BATCH
        report(benchmark, f"merged, {merged.bytes_kept / 1e6:.0f} MB kept")


def test_uncached(benchmark: Any, run: Run) -> None:
    """Merged batches, nothing kept: 25 records a sentence are looked up and merged."""
    ids = batches_of(np.random.default_rng(1))
    with NBestStore.open(run.store) as store:
        merged = store.merge_batches(memory=0)
        merged.batch(np.arange(N_SENTENCES))
        assert benchmark.pedantic(lambda: merged.batch(next(ids)), rounds=200).n_sentences == BATCH
        report(benchmark, "merged, nothing kept")


def test_text_by_offset(benchmark: Any, run: Run) -> None:
    """The same sentences from 25 plain files: sought, read and parsed; not merged, not scored."""
    ids = batches_of(np.random.default_rng(1))
    first = run.lists[0].read_bytes().partition(b"\n")[0]
    layout = Layout.of_line(first, None, Place(str(run.lists[0]), 1))

    def read() -> int:
        sentences = sorted(next(ids).tolist())
        lines = 0
        for stream, bounds in zip(streams, run.offsets, strict=True):
            pieces = []
            for sentence in sentences:
                stream.seek(bounds[sentence])
                pieces.append(stream.read(bounds[sentence + 1] - bounds[sentence]))
            lines += len(parse_block(b"".join(pieces), layout, stream.name, 1))
        return lines

    with ExitStack() as stack:
        streams = [stack.enter_context(path.open("rb")) for path in run.lists]
        read()
        lines = benchmark.pedantic(read, rounds=30)
        assert lines == N_ITERATIONS * BATCH * N_BEST
        report(benchmark, "text by offset")


def test_add_part(benchmark: Any, run: Run) -> None:
    """Storing the lists of 16 sentences, commit and all, where 24 iterations have theirs."""
    copy = run.store.parent / "copy"
    shutil.copytree(run.store, copy)
    lists = read_nbest(run.lists[-1])
    order = np.random.default_rng(1).permutation(N_SENTENCES)
    parts = iter(order[: N_SENTENCES // BATCH * BATCH].reshape(-1, BATCH))
    progress = {"weights": np.zeros(14), "batch": 1}
    with NBestStore.open(copy, writable=True) as store:
        store.drop_last(N_ITERATIONS)

        def prepare() -> tuple[tuple[NBestList], dict[str, Any]]:
            return (taken(lists, np.sort(next(parts))),), {}

        def add(part: NBestList) -> IngestReport:
            return store.add_part(
                N_ITERATIONS, [part], metric=BLEU, references=run.references,
                n_sentences=N_SENTENCES, progress=progress,
            )  # fmt: skip

        report = benchmark.pedantic(add, setup=prepare, rounds=60)
        assert report.hypotheses == BATCH * N_BEST


def taken(lists: NBestList, sentences: NDArray[np.int64]) -> NBestList:
    """The lines of some sentences of a list that has 100 of each and no sparse features."""
    rows = (sentences[:, None] * N_BEST + np.arange(N_BEST)).ravel()
    by_line = ("sentence_ids", "text_starts", "text_ends", "dense", "scores", "extra_starts",
               "extra_ends", "lines")  # fmt: skip
    return replace(
        lists,
        sparse_indptr=np.zeros(len(rows) + 1, dtype=np.int64),
        **{name: getattr(lists, name)[rows] for name in by_line},
    )
