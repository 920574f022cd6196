"""The language model against the definition of backoff, and what it refuses."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError
from mosesplug.extras.phrase_decoder.language_model import LanguageModel, read_arpa

SMALL = """\
\\data\\
ngram 1=5
ngram 2=2

\\1-grams:
-1.5\t<unk>
-99\t<s>\t-0.3
-1\t</s>
-0.5\ta\t-0.25
-0.75\tb

\\2-grams:
-0.125\t<s> a
-0.25\ta b

\\end\\
"""
LN10 = np.log(10.0)


def write(directory: Path, text: str) -> Path:
    path = directory / "lm.arpa"
    path.write_text(text)
    return path


def scores(model: LanguageModel, sentence: str) -> list[float]:
    """log10 of each word and of the end, from the start of a sentence."""
    state = np.array([model.start_state], dtype=np.int32)
    found = []
    for word in [*sentence.encode().split(), b"</s>"]:
        score, state = model.advance(state, model.words([word]))
        found.append(float(score[0]) / LN10)
    return found


def test_scores_by_hand(tmp_path: Path) -> None:
    model = read_arpa(write(tmp_path, SMALL))
    assert model.order == 2
    assert scores(model, "a b") == pytest.approx([-0.125, -0.25, -1.0])
    assert scores(model, "b a a") == pytest.approx([-0.3 - 0.75, -0.5, -0.25 - 0.5, -0.25 - 1.0])
    assert scores(model, "z b") == pytest.approx([-0.3 - 1.5, -0.75, -1.0])


@pytest.mark.parametrize("digits", [13, 15, 5000])
def test_absurd_counts_take_no_memory(digits: int, tmp_path: Path) -> None:
    path = write(tmp_path, SMALL.replace("ngram 2=2", f"ngram 2={digits * '9'}"))
    with pytest.raises(FormatError, match="expected in the header"):
        read_arpa(path)
    path = write(tmp_path, SMALL.replace("ngram 2=2", "ngram 2=999999999999"))
    with pytest.raises(FormatError, match="not a 2-gram"):
        read_arpa(path)
    path = write(tmp_path, SMALL.replace("ngram 1=5", "ngram 1=999999999999").split("\n\\2")[0])
    with pytest.raises(FormatError, match="the 1-grams end early"):
        read_arpa(path)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", [1, 2])
def test_scores_are_those_of_the_definition(
    random_system: Callable[..., Any], order: int, seed: int
) -> None:
    system = random_system(seed, order=order)
    model = read_arpa(system.directory / "lm.arpa")
    rng = random.Random(seed)
    for _ in range(50):
        words = rng.choices(["u", "v", "w", "x", "never"], k=6)
        context = ["<s>"]
        expected = []
        for word in [*words, "</s>"]:
            expected.append(system.language_model(tuple(context), word) / LN10)
            context.append(word)
        assert scores(model, " ".join(words)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_states_with_equal_scores_are_merged(random_system: Callable[..., Any], seed: int) -> None:
    model = read_arpa(random_system(seed).directory / "lm.arpa")
    words = np.arange(len(model.vocabulary), dtype=np.int32)
    states = np.unique(model.state)
    continuations = np.stack(
        [model.advance(np.full(len(words), state, dtype=np.int32), words)[0] for state in states]
    )
    for node, state in enumerate(model.state):
        row = int(np.searchsorted(states, state))
        from_node = model.advance(np.full(len(words), node, dtype=np.int32), words)[0]
        np.testing.assert_allclose(from_node, continuations[row], atol=1e-12)


def test_phrases_are_scored_without_context(tmp_path: Path) -> None:
    model = read_arpa(write(tmp_path, SMALL))
    words = model.words([b"a", b"b", b"b"])
    total, inner, states = model.phrase_scores(words, np.array([0, 2, 3, 3]))
    assert (total / LN10).tolist() == pytest.approx([-0.75, -0.75, 0.0])
    assert (inner / LN10).tolist() == pytest.approx([-0.25, 0.0, 0.0])
    assert states.tolist() == [0, 0, 0]


def test_a_gzip_file_reads_the_same(tmp_path: Path) -> None:
    packed = tmp_path / "lm.gz"
    packed.write_bytes(gzip.compress(SMALL.encode()))
    plain = read_arpa(write(tmp_path, SMALL))
    assert read_arpa(packed).log_probability.tolist() == plain.log_probability.tolist()


def test_without_unk_an_unknown_word_costs_a_hundred(tmp_path: Path) -> None:
    text = SMALL.replace("-1.5\t<unk>\n", "").replace("ngram 1=5", "ngram 1=4")
    assert scores(read_arpa(write(tmp_path, text)), "z")[0] == pytest.approx(-100.3)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\data\\", "data", "no ARPA header"),
        ("ngram 2=2", "ngram 3=2", "lm.arpa:3: 'ngram 2=COUNT' expected"),
        ("ngram 1=5", "ngram 1=6", "lm.arpa:11: not a 1-gram"),
        ("ngram 1=5", "ngram 1=4", "lm.arpa:10: \\2-grams: expected here"),
        ("ngram 2=2", "ngram 2=1", "lm.arpa:14: \\end\\ expected"),
        ("ngram 2=2", "ngram 2=9", "lm.arpa:15: not a 2-gram"),
        ("-0.75\tb", "-0.75", "lm.arpa:10: not a 1-gram"),
        ("-0.75\tb", "much\tb", "lm.arpa:10: not a 1-gram"),
        ("-0.75\tb", "0.75\tb", "lm.arpa:10: not a 1-gram"),
        ("-0.75\tb", "nan\tb", "lm.arpa:10: not a 1-gram"),
        ("-0.25\ta b", "-0.25\ta c", "lm.arpa:14: 'c' is not among the 1-grams"),
        ("-0.25\ta b", "-0.25\t<s> a", "lm.arpa:14: this 2-gram is listed twice"),
        ("\\end\\", "", "no \\end\\"),
        ("<s>", "<t>", "the model has no <s>"),
    ],
)
def test_errors_have_a_line_number(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = write(tmp_path, SMALL.replace(old, new))
    with pytest.raises(FormatError) as caught:
        read_arpa(path)
    assert message in str(caught.value)


def test_a_missing_context_is_reported(tmp_path: Path) -> None:
    text = SMALL.replace("ngram 2=2\n", "ngram 2=2\nngram 3=1\n").replace(
        "\\end\\", "\\3-grams:\n-0.1\tb a b\n\n\\end\\"
    )
    with pytest.raises(FormatError, match=r"lm.arpa:18: the context of this 3-gram"):
        read_arpa(write(tmp_path, text))


def test_a_binary_model_is_recognized(tmp_path: Path) -> None:
    path = tmp_path / "lm.bin"
    path.write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0\0\0\n")
    with pytest.raises(FormatError, match="binary KenLM file"):
        read_arpa(path)


@pytest.mark.parametrize("cut", [20, 60, 90, 130])
def test_truncated_files_are_rejected(tmp_path: Path, cut: int) -> None:
    with pytest.raises(FormatError):
        read_arpa(write(tmp_path, SMALL[:cut]))
