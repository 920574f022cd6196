"""Test references with sentence ids beside lists and texts of Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mosesplug
from mosesplug.errors import DataError

ORDER = (3, 1, 5, 0, 2, 4)
OPTIONS: dict[str, Any] = {"metric": "WER", "options": {"restarts": 1}}


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list whose ids are texts, and references with these ids in another order."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"spk1-utt-{n}\tw{n} a b\t-1\nspk1-utt-{n}\tv{n} a c\t-2\n" for n in range(6))
    Path("list.tsv").write_text(f"id\thyp\tlm\n{rows}")
    Path("refs").write_text("".join(f"spk1-utt-{n} w{n} a b\n" for n in ORDER))
    Path("plain").write_text("".join(f"w{n} a b\n" for n in range(6)))
    return tmp_path


@pytest.mark.parametrize("make", [str, Path, mosesplug.read_nbest])
def test_references_are_matched_by_ids(lists: Path, make: Callable[[str], Any]) -> None:
    for references in ("refs", Path("refs"), Path("refs").read_text().splitlines(), "plain"):
        for select in (1, "oracle"):
            (found,) = mosesplug.score(
                make("list.tsv"),
                references,
                "WER",
                select=select,
                samples=0,  # type: ignore[arg-type]
            )
            assert found.score == 0.0
            assert found.sentences == (0.0,) * 6
        fit = mosesplug.optimize(make("list.tsv"), references=references, **OPTIONS)
        assert fit.score == 1.0
    held_out = mosesplug.optimize(
        make("list.tsv"),
        references="refs",
        heldout_lists=make("list.tsv"),
        heldout_references="refs",
        **OPTIONS,
    )
    assert held_out.held_out == 1.0


def test_arrays_with_ids(lists: Path) -> None:
    nbest = mosesplug.read_nbest("list.tsv")
    names = [nbest.name_sentence(number) for number in nbest.sentence_ids.tolist()]

    def learn(sentence_ids: Any, references: Any) -> float:
        fit = mosesplug.optimize(
            features=nbest.dense,
            sentence_ids=sentence_ids,
            hypotheses=nbest.texts,
            references=references,
            **OPTIONS,
        )
        return fit.score

    mapping = dict(line.split(" ", 1) for line in Path("refs").read_text().splitlines())
    for references in ("plain", "refs", mapping):
        assert learn(names, references) == 1.0
    assert learn(nbest.sentence_ids, "plain") == 1.0
    with pytest.raises(DataError, match="references:1: the line begins with 'spk1-utt-3', which"):
        learn(nbest.sentence_ids, "refs")


def test_texts_without_ids_beside_references_with_ids(lists: Path) -> None:
    texts = [f"w{n} a b" for n in ORDER]
    message = r"refs:1: the line begins with 'spk1-utt-3', .* ids=False takes the lines in their"
    with pytest.raises(DataError, match=message):
        mosesplug.score(texts, "refs", "WER", samples=0)
    with pytest.raises(DataError, match=message):
        mosesplug.compare({"one": texts, "two": texts}, "refs", "WER")
    with pytest.raises(DataError, match=message):
        mosesplug.analyze({"one": texts, "two": texts}, "refs", "WER")
    assert mosesplug.score(texts, "refs", "WER", ids=False, samples=0)[0].score == 0.25
    named = [f"spk1-utt-{n} w{n} a b" for n in range(6)]
    assert mosesplug.score(named, "refs", "WER", samples=0)[0].score == 0.0


@pytest.mark.parametrize(
    ("words", "score"), [(("w1", "w2", "w3", "w4"), 2.0), (("yes", "no", "up", "left", "go"), 1.8)]
)
def test_references_of_one_word_are_not_ids_without_text(
    words: tuple[str, ...], score: float
) -> None:
    longer = [f"{word} please" for word in words[::-1]]
    with pytest.raises(DataError, match=r"has only the word .* ids=False takes the lines"):
        mosesplug.score(longer, words, "WER", samples=0)
    (found,) = mosesplug.score(longer, words, "WER", ids=False, samples=0)
    assert found.score == pytest.approx(score)
    # A recognizer that heard nothing has ids alone.
    (found,) = mosesplug.score(words, longer, "WER", samples=0)
    assert found.score == 1.0
