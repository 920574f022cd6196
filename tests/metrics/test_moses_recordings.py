"""Metrics against what Moses' own extractor and evaluator wrote, line by line."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.metrics import Metric, metric

Rows = list[tuple[int, ...]]


def read_bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def read_lines(path: Path) -> list[bytes]:
    return read_bytes(path).removesuffix(b"\n").split(b"\n")


def read_score_data(path: Path) -> dict[int, Rows]:
    """Rows of each sentence of an extractor's scores file in text form."""
    rows: dict[int, Rows] = {}
    for line in read_bytes(path).decode("ascii").splitlines():
        fields = line.split()
        if fields[0] == "SCORES_TXT_BEGIN_0":
            current = rows.setdefault(int(fields[1]), [])
        elif fields[0] != "SCORES_TXT_END_0":
            current.append(tuple(map(int, fields)))
    return rows


def score_list(
    scorer: Metric, references: Sequence[list[bytes]], path: Path, threads: int = 1
) -> tuple[list[int], list[bytes], NDArray[np.int32]]:
    """Sentence ids, feature fields and statistics of an n-best list, in file order."""
    data = read_bytes(path)
    sentences: list[int] = []
    features: list[bytes] = []
    starts: list[int] = []
    ends: list[int] = []
    position = 0
    for line in data.splitlines(keepends=True):
        sentence, text, values, *_ = line.split(b"|||")
        starts.append(position + len(sentence) + 3)
        ends.append(starts[-1] + len(text))
        sentences.append(int(sentence))
        features.append(values)
        position += len(line)
    rows = scorer.statistics(
        scorer.prepare(references),
        np.array(sentences),
        np.frombuffer(data, dtype=np.uint8),
        np.array(starts),
        np.array(ends),
        threads=threads,
    )
    return sentences, features, rows


def without_duplicates(hypotheses: list[tuple[bytes, tuple[int, ...]]]) -> Rows:
    """The statistics that the extractor keeps, in its order.

    A hypothesis with features and statistics seen before is replaced by the last one of the list,
    which is then looked at in its place.
    """
    kept = list(hypotheses)
    seen: set[tuple[bytes, tuple[int, ...]]] = set()
    row = 0
    while row < len(kept):
        if kept[row] in seen:
            last = kept.pop()
            if row < len(kept):
                kept[row] = last
        else:
            seen.add(kept[row])
            row += 1
    return [statistics for _, statistics in kept]


def assert_equals_extractor(
    scorer: Metric, references: Sequence[list[bytes]], nbest: Path, recorded: Path
) -> None:
    sentences, features, rows = score_list(scorer, references, nbest, threads=2)
    groups: dict[int, list[tuple[bytes, tuple[int, ...]]]] = {}
    for sentence, values, row in zip(sentences, features, rows.tolist(), strict=True):
        groups.setdefault(sentence, []).append((values, tuple(row)))
    ours = {sentence: without_duplicates(group) for sentence, group in groups.items()}
    theirs = read_score_data(recorded)
    assert ours.keys() == theirs.keys()
    differing = [sentence for sentence in theirs if ours[sentence] != theirs[sentence]]
    assert not differing


@pytest.mark.parametrize("run", [1, 2])
def test_every_line_of_whole_lists(multi30k: Path, run: int) -> None:
    assert_equals_extractor(
        metric("BLEU", "case:true"),
        [read_lines(multi30k / "text" / "dev.en")],
        multi30k / "mert-work" / f"run{run}.best100.out.gz",
        multi30k / "scores" / f"run{run}.scores.dat.gz",
    )


@pytest.mark.parametrize(
    ("label", "name", "settings"),
    [
        ("BLEU", "BLEU", ""),
        ("BLEU-nocase", "BLEU", "case:false"),
        ("PER", "PER", ""),
        ("WER", "WER", ""),
        ("CDER", "CDER", ""),
        ("TER", "TER", ""),
        ("BLEU-TER", "BLEU,TER", "weights:0.6+0.4"),
    ],
)
def test_every_line_of_the_first_hundred(
    multi30k: Path, label: str, name: str, settings: str
) -> None:
    folder = multi30k / "scores"
    assert_equals_extractor(
        metric(name, settings),
        [read_lines(folder / "first100.ref")],
        folder / "first100.best100.gz",
        folder / f"first100.{label}.scores.dat.gz",
    )


def hindi_references(recordings: Path) -> list[list[bytes]]:
    return [read_lines(recordings / "hindi-4ref" / f"dev.en{number}") for number in range(3)]


@pytest.mark.parametrize("kind", ["closest", "shortest", "average"])
def test_every_line_against_several_references(recordings: Path, kind: str) -> None:
    folder = recordings / "hindi-4ref"
    assert_equals_extractor(
        metric("BLEU", f"reflen:{kind}"),
        hindi_references(recordings),
        folder / "dev.en3.nbest",
        folder / f"scores.{kind}.dat",
    )


def test_corpus_scores_of_the_evaluator(recordings: Path) -> None:
    folder = recordings / "hindi-4ref"
    references = hindi_references(recordings)
    lines = (folder / "evaluator.txt").read_text().splitlines()
    checked = []
    for name, *settings, score in map(str.split, lines):
        scorer = metric(name, ",".join(settings))
        _, _, rows = score_list(scorer, references, folder / "dev.en3.nbest")
        assert f"{scorer.score(rows.sum(axis=0)):.4f}" == score
        checked.append(name)
    assert checked == ["BLEU"] * 6 + ["TER", "WER", "CDER"]


@pytest.mark.parametrize("name", ["BLEU", "PER", "WER", "CDER", "TER"])
def test_score_of_first_best_translations(multi30k: Path, name: str) -> None:
    folder = multi30k / "scores"
    scorer = metric(name)
    sentences, _, rows = score_list(
        scorer, [read_lines(folder / "first100.ref")], folder / "first100.best100.gz"
    )
    _, first = np.unique(sentences, return_index=True)
    recorded = dict(map(str.split, (folder / "evaluator.txt").read_text().splitlines()))
    assert f"{scorer.score(rows[first].sum(axis=0)):.4f}" == recorded[name]
