"""A run of random lists, to explore on a page."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mosesplug.metrics import metric
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import REPORTED, Evaluation, IterationResult, IterationStart
from tests.store.toys import Hypothesis, make_list

GROUPS = (("LM0", 1), ("TM0", 2))
SPARSE = ("WT_a~b", "WT_</script><script>document.title='sparse'</script>", "PP_c~d")
WORDS = (b"the", b"a", b"house", b"dog", b"is", b"red", b"old", b"home", b"she", b"sees")
HOSTILE = (
    b"<img src=x onerror=\"document.title='image'\"> the old house",
    b"</script><script>document.title='script'</script> a dog",
    "<b>\u202dالبيت</b> e\u0301 \U0001f469\u200d\U0001f680 ".encode() + b"long" * 2500,
    b"the \x1b[31m red \xe2\x80\xae house \xff is old",
)
N_SENTENCES = 12
N_HYPOTHESES = 8
N_ITERATIONS = 3


def make_references() -> tuple[bytes, ...]:
    """One reference of each sentence."""
    rng = np.random.default_rng(1)
    return tuple(b" ".join(rng.choice(WORDS, size=rng.integers(5, 9))) for _ in range(N_SENTENCES))


def make_explored_run(directory: Path, *, name: str = "BLEU", seed: int = 1) -> Path:
    """A working directory; small integers as features make many ties."""
    directory.mkdir(parents=True)
    rng, judge = np.random.default_rng(seed), metric(name)
    references = judge.prepare([make_references()])
    weights = [_draw_weights(rng) for _ in range(N_ITERATIONS + 1)]
    with NBestStore.open(directory / "nbests.lmdb", writable=True) as store:
        store.require({f"{REPORTED}WER": metric("WER").signature()})
        for iteration in range(1, N_ITERATIONS + 1):
            # The last sentence has no list.
            lines = [
                _draw_hypothesis(rng, sentence)
                for sentence in range(N_SENTENCES - 1)
                for _ in range(N_HYPOTHESES)
            ]
            if iteration == 1:
                lines[: len(HOSTILE)] = [
                    line._replace(text=text) for line, text in zip(lines, HOSTILE, strict=False)
                ]
            start = IterationStart(weights[iteration - 1], 7, {"algorithm": "mert"}, ("x",), 1.5)
            store.add_iteration(
                iteration,
                [make_list(lines, GROUPS)],
                metric=judge,
                references=references,
                n_sentences=N_SENTENCES,
                record=start.as_record(),
            )
            words = {"news": {"WER": 0.25}}
            monitored = (Evaluation(iteration, monitors={"news": 0.25}, reported=words),)
            result = IterationResult(
                weights[iteration], 0.9, 0.1, 0.5, heldout=monitored, reported={"WER": 0.75}
            )
            store.record_result(iteration, result.as_record())
    return directory


def make_wide_run(directory: Path) -> Path:
    """A run of 60 dense features in two groups, with 130 hypotheses of one sentence."""
    directory.mkdir()
    rng, judge, groups = np.random.default_rng(4), metric("BLEU"), (("LM0", 1), ("Topic0", 59))
    references = judge.prepare([make_references()[:1]])
    values = rng.integers(-9, 10, size=(130, 60)).tolist()
    text = make_references()[0]
    lines = [Hypothesis(0, text + b" %d" % place, tuple(v)) for place, v in enumerate(values)]
    weights = Weights(tuple(rng.normal(size=60).tolist()))
    with NBestStore.open(directory / "nbests.lmdb", writable=True) as store:
        store.add_iteration(
            1,
            [make_list(lines, groups)],
            metric=judge,
            references=references,
            n_sentences=1,
            record=IterationStart(weights, 7, {"algorithm": "mert"}, ("x",), 1.5).as_record(),
        )
    return directory


def _draw_weights(rng: np.random.Generator) -> Weights:
    sparse = dict(zip(SPARSE[:2], rng.integers(-2, 3, size=2).tolist(), strict=True))
    return Weights(tuple(rng.integers(1, 4, size=3).tolist()), sparse)


def _draw_hypothesis(rng: np.random.Generator, sentence: int) -> Hypothesis:
    words = make_references()[sentence].split()
    kept = [word if rng.random() < 0.8 else rng.choice(WORDS) for word in words]
    text = b" ".join(kept[: rng.integers(4, 10)])
    names = rng.permutation(len(SPARSE))[: rng.integers(0, 3)].tolist()
    return Hypothesis(
        sentence,
        text,
        tuple(rng.integers(-3, 4, size=3).tolist()),
        tuple((SPARSE[place], float(rng.integers(1, 3))) for place in names),
    )
