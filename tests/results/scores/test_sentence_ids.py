"""Translations and references that begin with sentence ids."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mosesplug
from mosesplug.cli.main import main
from mosesplug.errors import DataError
from mosesplug.results.scores.comparison import System, find_shared_weights
from mosesplug.results.scores.sentence_ids import arrange_systems

REFS = ["the house is small", "they play the flute", "yes", "we see the town", "a dog runs"]
TEXTS = ["the house is big", "they play a flute", "yes", "we see a town", "the dog runs"]
IDS = [f"1089-134686-{number:04}" for number in range(5)]


def kaldi(path: Path, texts: list[str], order: list[int], ids: list[str] = IDS) -> Path:
    path.write_text("".join(f"{ids[k]} {texts[k]}\n" for k in order))
    return path


def manifest(path: Path, key: str, texts: list[str], order: list[int], ids: bool = True) -> Path:
    rows = [
        {"audio_filepath": "a.wav", key: texts[k]} | ({"id": IDS[k]} if ids else {}) for k in order
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def score(hypotheses: Path, references: Path, **more: object) -> list[float]:
    found = mosesplug.score(hypotheses, references, ["WER", "CER"], samples=0, **more)  # type: ignore[arg-type]
    return [found[0].score, found[1].score, *found[0].sentences]


@pytest.fixture
def plain() -> list[float]:
    found = mosesplug.score(TEXTS, [REFS], ["WER", "CER"], samples=0)
    return [found[0].score, found[1].score, *found[0].sentences]


def test_files_of_kaldi_and_manifests_are_matched_by_ids(
    tmp_path: Path, plain: list[float]
) -> None:
    rows = list(range(5))
    refs = kaldi(tmp_path / "text", REFS, rows)
    same = manifest(tmp_path / "refs.json", "text", REFS, rows)
    hypotheses = [
        kaldi(tmp_path / "hyp", TEXTS, rows[::-1]),
        manifest(tmp_path / "hyp.json", "pred_text", TEXTS, [2, 0, 4, 1, 3]),
    ]
    for each in hypotheses:
        assert score(each, refs) == plain
        assert score(each, same) == plain
    # Without ids, manifests have the order of their lines.
    unnamed = manifest(tmp_path / "unnamed.json", "text", REFS, rows, ids=False)
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{text}\n" for text in TEXTS))
    assert score(lines, unnamed) == plain
    assert score(lines, same, ids=False) == plain
    assert score(manifest(tmp_path / "own", "pred_text", TEXTS, rows, ids=False), unnamed) == plain


def test_a_caller_decides(tmp_path: Path, plain: list[float]) -> None:
    ids = ["alice", "bob", "carol", "dave", "erin"]
    refs = kaldi(tmp_path / "text", REFS, [0, 1, 2, 3, 4], ids)
    hypotheses = kaldi(tmp_path / "hyp", TEXTS, [0, 1, 2, 3, 4], ids)
    with pytest.raises(DataError, match="text:1: the line begins with 'alice', and all lines of"):
        score(hypotheses, refs)
    assert score(hypotheses, refs, ids=True) == plain
    assert score(kaldi(tmp_path / "other", TEXTS, [4, 3, 2, 1, 0], ids), refs) == plain
    named = kaldi(tmp_path / "named", TEXTS, [0, 1, 2, 3, 4])
    text = kaldi(tmp_path / "more", REFS, [0, 1, 2, 3, 4])
    # As words, they lower the rate.
    assert score(named, text, ids=False)[0] < plain[0]


def test_sentence_weights_follow_their_run(tmp_path: Path) -> None:
    refs = kaldi(tmp_path / "text", REFS, [0, 1, 2, 3, 4])
    run = kaldi(tmp_path / "run", TEXTS, [2, 0, 4, 1, 3])
    other = kaldi(tmp_path / "other", TEXTS, [0, 1, 2, 3, 4])
    weights = np.array([2.0, 0.0, 4.0, 1.0, 3.0])
    system = System("run", (other, run), sentence_weights=(None, weights))
    ((arranged,), _) = arrange_systems([system], [refs.read_bytes().splitlines()])
    own, (shared, _) = arranged.sentence_weights, find_shared_weights([arranged])
    assert own[0] is None
    assert own[1] is shared
    assert shared is not None
    assert shared.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_scores_from_outside_follow_their_translation(tmp_path: Path) -> None:
    refs = kaldi(tmp_path / "text", REFS, [0, 1, 2, 3, 4])
    base = kaldi(tmp_path / "base", TEXTS, [4, 3, 2, 1, 0])
    new = kaldi(tmp_path / "new", REFS, [1, 0, 2, 4, 3])
    scores = {"Q": [0.4, 0.3, 0.2, 0.1, 0.0]}
    found = mosesplug.score(base, refs, ["Q"], scores=scores, samples=0)
    assert found[0].sentences == (0.0, 0.1, 0.2, 0.3, 0.4)
    both = {"Q": {"base": scores["Q"], "new": [0.1, 0.0, 0.2, 0.4, 0.3]}}
    # The same numbers in another order: no difference in any sentence.
    rows = mosesplug.compare({"base": base, "new": new}, refs, ["WER", "Q"], scores=both)
    assert [row.score for row in rows if row.system == "new"] == [0.0, pytest.approx(0.2)]
    assert rows[3].p_bootstrap == 1.0
    page = mosesplug.analyze({"base": base, "new": new}, refs, "WER")
    assert any(text in str(page.examples) for text in REFS)


def test_errors(tmp_path: Path) -> None:
    refs = kaldi(tmp_path / "text", REFS, [0, 1, 2, 3, 4])
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{text}\n" for text in TEXTS))
    message = (
        f"{refs}:1: the line begins with '1089-134686-0000', which looks like a sentence id, but "
        f"{lines} does not begin with ids.*; ids=False takes the lines in their order"
    )
    with pytest.raises(DataError, match=message):
        score(lines, refs)
    with pytest.raises(DataError, match=f"{refs}:1: the line begins with '1089-134686-0000'"):
        score(refs, lines)
    assert score(lines, refs, ids=False)[0] > 0.0
    fewer = kaldi(tmp_path / "fewer", TEXTS, [0, 1, 2, 3])
    with pytest.raises(
        DataError, match=f"{fewer}: there is no line of the sentence id '1089-134686-0004'"
    ):
        score(fewer, refs)
    with pytest.raises(DataError, match=f"{fewer}: there is no line of the sentence id '1089-1"):
        score(refs, fewer)
    twice = kaldi(tmp_path / "twice", TEXTS, [0, 1, 1, 3, 4])
    with pytest.raises(DataError, match=f"{twice}:3: the sentence id '1089-134686-0001' is repea"):
        score(twice, refs, ids=True)


def test_command_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refs = kaldi(tmp_path / "text", REFS, [0, 1, 2, 3, 4])
    base = kaldi(tmp_path / "base", TEXTS, [4, 3, 2, 1, 0])
    new = kaldi(tmp_path / "new", REFS, [1, 0, 2, 4, 3])
    for words in (
        ["score", base, refs, "--metric", "WER", "--json"],
        ["compare", base, new, "--refs", refs, "--metric", "WER", "--format", "json"],
    ):
        with pytest.raises(SystemExit) as end:
            main([*map(str, words)])
        assert not end.value.code
        [first, *others] = json.loads(capsys.readouterr().out)
        assert first["score"] == pytest.approx(4 / 16)
        assert all(each["score"] == 0.0 for each in others)
