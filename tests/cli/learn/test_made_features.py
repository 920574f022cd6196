"""Learn with added and derived features, and rerank with the weights, as a user does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mosesplug
from formats.nbest.files import read_nbest
from formats.weights.any_format import read_weights
from mosesplug.cli.main import main

Run = Callable[..., tuple[int, str, str]]

DERIVE = ("--derive", "len=words", "--derive", "lm_norm=LM / len")
WORDS = 6


def write_lists(name: str, first: int, sentences: int) -> None:
    """Lists in which only ``lm / words`` knows the right translation."""
    rng = np.random.default_rng(first)
    references, lines, values = [], [], []
    for sentence in range(sentences):
        words = [f"w{first + sentence}{k}" for k in range(WORDS)]
        references.append(" ".join(words))
        for wrong in range(4):
            hypothesis = words[: WORDS - wrong] + ["x"] * (2 * wrong)
            lines.append(f"{sentence} ||| {' '.join(hypothesis)} ||| F0= {rng.normal()} ||| 0\n")
            values.append(f"{-(1 + wrong / 10 + wrong % 2) * len(hypothesis)}\n")
    Path(f"{name}.refs").write_text("\n".join(references) + "\n")
    Path(name).write_text("".join(lines))
    Path(f"{name}.lm").write_text("".join(values))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls a command in a directory with the lists; its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    write_lists("dev", 0, 8)
    write_lists("test", 100, 5)

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([*map(str, words)])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return call


def learn(run: Run, *words: object) -> tuple[int, str, str]:
    same = ("optimize", "--nbest", "dev", "--refs", "dev.refs", "--add-feature", "LM=dev.lm")
    return run(*same, *DERIVE, *words)


@pytest.mark.parametrize("name", ["w", "w.json", "w.yaml"])
def test_weights_record_their_features(name: str, run: Run) -> None:
    code, _, error = learn(run, "-o", name, "--seed", 2)
    assert code == 0
    assert "score at the end    1.000000" in error
    made = read_weights(name).changes
    assert (made.added_features, dict(made.derived_features)) == (
        ("LM",),
        {"len": "words", "lm_norm": "LM / len"},
    )
    same = ("rerank", "--nbest", "test", "--weights", name)
    added = ("--add-feature", "LM=test.lm")
    code, out, _ = run(*same, *added, *DERIVE)
    assert (code, out) == (0, Path("test.refs").read_text())
    # Blanks do not count, and neither does the order of options.
    assert run(*same, "--derive", "len=words", "--derive", "lm_norm=LM/len", *added)[:2] == (0, out)
    code, _, error = run(*same)
    assert code == 2
    assert (
        f"{name} was learned with features that test lacks: add --add-feature LM=FILE --derive "
        "'lm_norm=LM / len'"
    ) in error
    # What is computed from the list is derived as the weights record it.
    assert run(*same, *added)[:2] == (0, out)
    code, _, error = run(*same, *added, "--derive", "len=words", "--derive", "lm_norm=LM/chars")
    assert code == 2
    assert f"--derive lm_norm=LM/chars: {name} was learned with lm_norm=LM / len" in error
    # A list that was written with its features has them.
    assert run(*same, *added, *DERIVE, "--output-nbest", "with", "-o", "best")[0] == 0
    assert dict(read_nbest("with", dense=("F0", "LM", "len", "lm_norm")).groups)["lm_norm"] == 1
    assert run("rerank", "--nbest", "with", "--weights", name)[:2] == (0, out)
    converted = run("weights", "convert", name, "--to", "json")[1]
    assert json.loads(converted)["derived"] == {"len": "words", "lm_norm": "LM / len"}
    _, converted, error = run("weights", "convert", name, "--to", "equals")
    assert converted.startswith("F0=")
    made = "--add-feature LM=FILE --derive len=words --derive 'lm_norm=LM / len'"
    assert f"equals does not record features that were not in the lists: {made}" in error


def test_held_out_lists_have_their_own_values(run: Run) -> None:
    held_out = ("--heldout-nbest", "test", "--heldout-refs", "test.refs", "-o", "w")
    code, _, error = learn(run, *held_out, "--heldout-add-feature", "LM=test.lm")
    assert code == 0
    assert "held out (5 sentences)" in error
    (scores,) = (line for line in error.splitlines() if line.startswith("score at the end"))
    assert scores.split()[-2:] == ["1.000000", "1.000000"]
    for words, message in (
        ((), "the held-out lists have no values of LM: add --heldout-add-feature LM=FILE"),
        (("LM=test.lm", "QE=test.lm"), "names QE, which --add-feature does not"),
        (("LM=dev.lm",), "dev.lm:21: a value without a hypothesis: the lists have 20"),
    ):
        options = [word for each in words for word in ("--heldout-add-feature", each)]
        code, _, error = learn(run, *held_out, *options)
        assert code in (1, 2)
        assert message in error
    assert learn(run, "--heldout-add-feature", "LM=test.lm")[0] == 2


def test_folds_and_several_lists_take_one_sequence_of_values(run: Run) -> None:
    Path("both.lm").write_text(Path("dev.lm").read_text() * 2)
    same = ("optimize", "--nbest", "dev", "dev", "--refs", "dev.refs", *DERIVE, "--quiet")
    expected = learn(run, "--quiet")[1]
    for files in ("both.lm", "dev.lm,dev.lm"):
        assert run(*same, "--add-feature", f"LM={files}") == (0, expected, "")
    code, _, error = learn(run, "--folds", 2, "-o", "w")
    assert code == 0
    assert "all sentences, each with weights of the other folds   " in error


def test_texts_are_changed_before_scoring_and_printed_unchanged(run: Run) -> None:
    for name in ("dev", "test"):
        Path(name).write_text(Path(name).read_text().replace("w", "W@@ "))
    code, _, error = learn(run, "--transform", "sed 's/W@@ /w/g'", "-o", "w")
    assert code == 0
    assert "score at the end    1.000000" in error
    # words counts those of the list, which has subwords.
    assert learn(run, "-o", "w", "--transform", "sed 's/W@@ /w/g' | head -3")[0] == 1
    same = ("rerank", "--nbest", "test", "--weights", "w", "--add-feature", "LM=test.lm", *DERIVE)
    assert "W@@ 100" in run(*same)[1]
    code, out, _ = run(*same, "--mbr", "--transform", "bpe")
    assert code == 0
    assert "W@@ 100" in out
    code, _, error = run(*same, "--transform", "bpe")
    assert code == 2
    assert "--transform requires --mbr" in error


def test_the_same_from_python(run: Run) -> None:
    expected = learn(run, "--quiet", "--weights-format", "json")[1]
    values = np.loadtxt("dev.lm")
    derive = {"len": "words", "lm_norm": "LM/len"}
    fit = mosesplug.optimize(
        "dev", references="dev.refs", add_features={"LM": values}, derive=derive
    )
    found = json.loads(expected)["dense"]
    assert dict(fit.weights) == found
    fit.save("saved.json")
    assert json.loads(Path("saved.json").read_text())["derived"] == derive
    ranked = fit.rerank("test", add_features={"LM": "test.lm"})
    assert "\n".join(ranked.texts) + "\n" == Path("test.refs").read_text()
    assert ranked.lists.names == ("F0", "LM", "len", "lm_norm")
    lists = mosesplug.read_nbest("test", add_features={"LM": "test.lm"}, derive=derive)
    assert fit.rerank(lists).texts == ranked.texts
    assert [lists.texts[row] for row in fit.choose(lists)] == ranked.texts
    assert np.array_equal(lists.dense[:, 3], lists.dense[:, 1] / lists.dense[:, 2])
    again = mosesplug.optimize(lists, references="test.refs")
    assert again.score == pytest.approx(1.0)
    with pytest.raises(
        mosesplug.UsageError, match=r"the table was learned with features that .*LM"
    ):
        fit.choose(mosesplug.read_nbest("test"))
    with pytest.raises(mosesplug.UsageError, match=r"add_features and features exclude each"):
        mosesplug.optimize(
            features=[[1.0]], sentence_ids=[0], scores=[1.0], add_features={"LM": [1.0]}
        )
    with pytest.raises(mosesplug.UsageError, match=r"derive and features exclude each other"):
        mosesplug.optimize(features=[[1.0]], sentence_ids=[0], scores=[1.0], derive=["x=1"])
    arrays = {"features": [[1.0], [2.0]], "sentence_ids": [0, 0], "hypotheses": ["a", "b"]}
    fit = mosesplug.optimize(**arrays, references=["B"], metric="CHRF", transform="tr b B")
    assert fit.score == 1.0
    two = mosesplug.read_nbest("test", add_features={"T": np.ones((20, 2))}, derive=["s=T_0+T_1"])
    assert two.names == ("F0", "T", "T", "s")
    assert set(two.dense[:, 3].tolist()) == {2.0}
    upper = mosesplug.read_nbest("test", transform="tr w W")
    assert upper.texts[0].startswith("W1000 W1001")
    folds = mosesplug.cross_validate(
        "dev", references="dev.refs", folds=2, add_features={"LM": "dev.lm"}, derive=derive
    )
    assert len(folds.folds) == 2
    scored = mosesplug.optimize("dev", scores=values, derive={"x": "words**2"})
    assert scored.weights.keys() == {"F0", "x"}


def test_the_length_is_that_of_the_lists(run: Run) -> None:
    """The words that are counted for scores may not be those that a command writes."""
    words = ("--length-exponent", "0:1", "--transform", "bpe", "-o", "w")
    code, _, error = learn(run, *words)
    assert code == 2
    assert "use --derive len=words --length-by len" in error
    assert learn(run, *words, "--length-by", "len")[0] == 0


def test_other_commands_add_and_check_the_same_features(run: Run) -> None:
    assert learn(run, "-o", "w", "--quiet")[0] == 0
    added = ("--add-feature", "LM=test.lm")
    best = Path("test.refs").read_text()
    of_mbr = ("mbr", "--nbest", "test", "--weights", "w", "--scale", 1000)
    code, out, _ = run(*of_mbr, *added, *DERIVE)
    assert (code, out) == (0, best)
    # It compares the changed texts, and prints those of the list.
    code, out, _ = run(*of_mbr, *added, *DERIVE, "--transform", "tr a-z A-Z")
    assert (code, out) == (0, best)
    of_oracle = ("oracle", "test", "--refs", "test.refs", "--weights", "w")
    code, out, _ = run(*of_oracle, *added, *DERIVE)
    assert code == 0
    assert "(first best)  1.0000" in out
    for words in (of_mbr, of_oracle):
        code, _, error = run(*words)
        assert code == 2
        assert "w was learned with features that test lacks: add --add-feature LM=FILE" in error
        code, _, error = run(*words, *added, "--derive", "len=chars", "--derive", "lm_norm=LM/len")
        assert code == 2
        assert "--derive len=chars: w was learned with len=words" in error
    words = ("bench-optimizers", "dev", "--refs", "dev.refs", "--algorithms", "mert", "--seeds", 1)
    code, out, _ = run(*words, "--add-feature", "LM=dev.lm", "--derive", "n=LM/words")
    assert code == 0
    assert "mert                1.0000" in out
    words = ("nbest", "import", "dev", "store", "--refs", "dev.refs", "--transform", "tr w W")
    assert run(*words, "--add-feature", "LM=dev.lm", *DERIVE)[0] == 0
    assert "W00 W01" in run("nbest", "show", "store", 0)[1]


def test_scores_of_changed_texts(run: Run) -> None:
    Path("upper").write_text(Path("dev").read_text().replace("w", "W"))
    words = ("dev.refs", "--metric", "BLEU", "--samples", 0, "--json")
    plain = json.loads(run("score", "dev", *words, "--nbest", "--oracle")[1])
    changed = ("--nbest", "--oracle", "--transform", "tr W w")
    (found,) = json.loads(run("score", "upper", *words, *changed)[1])
    assert found["score"] == plain[0]["score"] == 1.0
    lists = mosesplug.read_nbest("upper")
    keywords = {"metrics": "BLEU", "select": "oracle", "samples": 0}
    assert mosesplug.score(lists, "dev.refs", **keywords, transform="tr W w")[0].score == 1.0
    assert mosesplug.score(lists, "dev.refs", **keywords)[0].score < 0.5
    assert run("score", "dev.refs", "dev.refs", "--transform", "bpe")[0] == 2
    with pytest.raises(mosesplug.UsageError, match="transform requires n-best lists"):
        mosesplug.score("dev.refs", "dev.refs", transform="bpe")


def test_weights_of_divided_scores_are_no_start_of_others(run: Run) -> None:
    assert learn(run, "--length-exponent", "F0:0.5", "-o", "w")[0] == 0
    code, _, error = learn(run, "--init", "w")
    assert code == 2
    assert "w: these weights belong to scores divided by the length to the power of F0:0.5" in error
    assert "Give --length-exponent F0:0.5, or 0 to divide nothing" in error
    for exponent in ("F0:0.5", "0", "0:1"):
        assert learn(run, "--init", "w", "--length-exponent", exponent, "-o", "again")[0] == 0
    assert Path("w.length").exists()
    assert learn(run, "--length-exponent", "0.5", "--length-by", "len", "-o", "w")[0] == 0
    assert "--length-exponent 0.5 --length-by len" in learn(run, "--init", "w")[2]
