"""Finished translations and their statistics: files of lines, or hypotheses of n-best lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.dense import is_named
from formats.nbest.files import read_nbest
from mosesplug.errors import UsageError
from mosesplug.evaluation.tuned_translations import tuned_translations
from mosesplug.features import FeatureSpace
from mosesplug.inspection.lists import sentence_scores
from mosesplug.metrics import Metric, Prepared, metric
from mosesplug.moses_tools.scoring import Hypotheses, check_sentences
from mosesplug.optimizers.oracles import corpus_oracles
from mosesplug.tuning_set import TuningSet

__all__ = [
    "ERROR_RATES",
    "Choice",
    "Judge",
    "by_sentence",
    "chosen_of_list",
    "figure",
    "judges",
    "systems",
]

ERROR_RATES = frozenset({"CDER", "PER", "TER", "TER-SACREBLEU", "WER"})
"""Metrics that people know as rates of errors; here and in tuning, 1 less the rate is the score."""

Choice = int | Literal["oracle"]


@dataclass(frozen=True)
class Judge:
    """A metric with its references."""

    metric: Metric
    prepared: Prepared

    def statistics(self, hypotheses: Hypotheses, threads: int = 1) -> NDArray[np.int32]:
        """Of each hypothesis, int32 ``[n, n_statistics]``."""
        return self.metric.statistics(
            self.prepared,
            hypotheses.sentence_ids,
            hypotheses.buffer,
            hypotheses.starts,
            hypotheses.ends,
            threads=threads,
        )


def judges(specifications: Sequence[str], references: Sequence[Sequence[bytes]]) -> list[Judge]:
    """Metrics as the command line names them: ``BLEU``, ``CHRF beta:2``.

    Raises:
        UsageError: an unknown metric or setting.
        DataError: a metric cannot use these references.
    """
    found = []
    for specification in specifications:
        name, _, settings = specification.strip().partition(" ")
        if not name:
            raise UsageError("--metric needs a name, as BLEU or 'CHRF beta:2'")
        made = metric(name, settings)
        found.append(Judge(made, made.prepare(references)))
    return found


def figure(name: str, score: float) -> float:
    """A score as people know it: of an error rate, the rate."""
    return 1.0 - score if name in ERROR_RATES else score


def chosen_of_list(
    path: Path, judge: Judge, choice: Choice, *, names: Sequence[str] | None, threads: int
) -> NDArray[np.int32]:
    """Statistics of one hypothesis of each sentence in an n-best list.

    Args:
        path: the list.
        judge: the metric.
        choice: a rank, from 1 (of a shorter list the last), or ``oracle``: the best choice for the
            corpus that a greedy search finds.
        names: of the columns of a list without labels.
        threads: of scoring.

    Raises:
        FormatError: it cannot be read, or lacks a sentence.
    """
    # Of features, nothing is asked; where all are sparse, lines may differ in them.
    block = read_nbest(path, names=names, dense=() if is_named(path) else None)
    check_sentences(block, judge.prepared.n_sentences)
    sentences = np.arange(judge.prepared.n_sentences)
    offsets = np.searchsorted(block.sentence_ids, np.append(sentences, len(sentences)))
    widths = np.diff(offsets)
    if not widths.all():
        raise FormatError(
            f"sentence {int(np.argmin(widths))} has no hypothesis",
            path=path,
            remedy="Give the list of the whole text that the references translate",
        )
    listed = Hypotheses(block.sentence_ids, block.buffer, block.text_starts, block.text_ends)
    statistics = judge.statistics(listed, threads)
    if choice == "oracle":
        lists = TuningSet(
            space=FeatureSpace(()),
            sentence_ids=sentences,
            offsets=offsets.astype(np.int64),
            dense=np.zeros((len(block), 0), dtype=np.float32),
            sparse=None,
            stats=statistics,
            lengths=np.zeros(len(block), dtype=np.int32),
        )
        rows = corpus_oracles(lists, judge.metric, np.random.default_rng(1)).first
    else:
        rows = offsets[:-1] + np.minimum(choice, widths) - 1
    return statistics[rows]


def by_sentence(judge: Judge, statistics: NDArray[np.int32]) -> NDArray[np.float64]:
    """Scores of single sentences, float64 ``[n]``; BLEU+1 for BLEU (``lists.sentence_scores``)."""
    return sentence_scores(judge.metric, statistics)


def systems(words: Sequence[str]) -> list[tuple[str, list[Path]]]:
    """Systems as the command line names them: ``FILE[,FILE...]``, or ``NAME=FILE[,FILE...]``.

    A working directory stands for the translations of its tuning set with the weights of its
    result; one of several runs, for those of each of them.

    Raises:
        UsageError: a file is missing, or two systems have one name.
        DataError: a working directory without such translations.
    """
    found: list[tuple[str, list[Path]]] = []
    for word in words:
        named = re.fullmatch(r"([^=/]+)=(.+)", word)
        name, files = (named[1], named[2]) if named and not Path(word).exists() else (word, word)
        paths = [Path(files)] if Path(files).exists() else [Path(each) for each in files.split(",")]
        files_of: list[Path] = []
        for path in paths:
            if not path.exists():
                raise UsageError(f"there is no file {path} (of {word})")
            files_of += tuned_translations(path) if path.is_dir() else [path]
        found.append((name, files_of))
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise UsageError("two systems have one name: give others, as NAME=FILE")
    return found
