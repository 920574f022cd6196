"""``mosesplug score`` and ``compare`` as a user calls them, against sacrebleu."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.cli.main import main

Run = Callable[..., tuple[int, str, str]]

REFERENCES = [
    ["the red house is old", "she sees a small dog today in the park", "they went home"],
    ["the house that is red is old", "today she sees a little dog in a park", "they left"],
]
ONE = ["the red house is old", "she sees one dog today in the park", "they went home now"]
TWO = ["a house is old red", "she sees a dog in the park", "they home"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls ``mosesplug``; its exit code, stdout and stderr."""

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(list(map(str, words)))
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return call


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Translations and references in the current directory."""
    files = {"ref0": REFERENCES[0], "ref1": REFERENCES[1], "one": ONE, "two": TWO}
    for name, lines in files.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "references", [("ref0",), ("ref",), ("ref0", "ref1"), ("--refs", "ref0"), ("--refs", "ref")]
)
def test_scores_are_sacrebleus(references: tuple[str, ...], run: Run, texts: Path) -> None:
    from sacrebleu.metrics import BLEU, CHRF, TER

    lines = REFERENCES[:1] if references[-1] == "ref0" else REFERENCES
    expected = [
        BLEU(tokenize="none", smooth_method="none").corpus_score(ONE, lines).score,
        TER(case_sensitive=True).corpus_score(ONE, lines).score,
        CHRF().corpus_score(ONE, lines).score,
    ]
    code, out, _ = run("score", "one", *references, "--json", "--sentences")
    assert code == 0
    rows = json.loads(out)
    assert [row["metric"] for row in rows] == ["BLEU", "TER-SACREBLEU", "CHRF"]
    # The interplay of several references is as in sacrebleu but for chrF, which Moses averages.
    compared = rows if len(lines) == 1 else rows[:2]
    for row, score in zip(compared, expected, strict=False):
        assert 100 * row["score"] == pytest.approx(score, abs=1e-6)
        low, high = row["interval"]
        assert low <= high
        assert len(row["sentences"]) == 3


def test_table_and_sentences(run: Run, texts: Path) -> None:
    _, out, _ = run("score", "one", "ref0", "--metric", "BLEU", "--samples", 0, "--sentences")
    lines = out.splitlines()
    assert lines[:2] == ["sentence\tBLEU", "0\t1.0000"]
    assert lines[-2].split()[:2] == ["metric", "score"]
    assert "BLEU|nrefs:1" in lines[-1]


def test_sentences_of_lists_have_the_ids_of_the_lists(run: Run, texts: Path) -> None:
    pairs = list(zip(("utt-b", "utt-a", "utt-c"), ONE, strict=True))
    rows = [json.dumps({"id": name, "hyp": text, "scores": {"lm": -1}}) for name, text in pairs]
    (texts / "list.jsonl").write_text("\n".join(rows) + "\n")
    words = ("score", "list.jsonl", "ref0", "--nbest", "--metric", "WER", "--samples", 0)
    _, out, _ = run(*words, "--sentences")
    lines = out.splitlines()
    assert [line.split("\t")[0] for line in lines[:4]] == ["sentence", "utt-b", "utt-a", "utt-c"]
    assert lines[1] == "utt-b\t0.0000"
    (row,) = json.loads(run(*words, "--sentences", "--json")[1])
    assert row["ids"] == ["utt-b", "utt-a", "utt-c"]
    assert "ids" not in json.loads(run(*words, "--json")[1])[0]
    (texts / "numbers").write_text("0 ||| a ||| lm= 1 ||| 1\n")
    (texts / "a").write_text("a\n")
    _, out, _ = run("score", "numbers", "a", "--nbest", "--metric", "WER", "--sentences")
    assert out.splitlines()[1] == "0\t0.0000"


def test_lists(run: Run, texts: Path) -> None:
    entries = [
        f"{number} ||| {text} ||| LM0= -1 ||| -1"
        for number, pair in enumerate(zip(TWO, ONE, strict=True))
        for text in pair
    ]
    (texts / "list").write_text("\n".join(entries) + "\n")
    found = {}
    for option in (("--rank", 1), ("--rank", 2), ("--rank", 9), ("--oracle",)):
        words = ("score", "list", "ref0", "--nbest", *option, "--json", "--metric", "BLEU")
        found[option] = json.loads(run(*words)[1])[0]["score"]
    for name, option in (("two", ("--rank", 1)), ("one", ("--rank", 2))):
        alone = json.loads(run("score", name, "ref0", "--json", "--metric", "BLEU")[1])
        assert alone[0]["score"] == found[option]
    assert found["--rank", 9] == found["--rank", 2]
    assert found["--oracle",] >= max(found["--rank", 1], found["--rank", 2])
    (texts / "list").write_text("\n".join(entries[2:]) + "\n")
    code, _, error = run("score", "list", "ref0", "--nbest")
    assert code == 1
    assert "sentence 0 has no hypothesis" in error


@pytest.mark.parametrize("layout", ["text", "markdown", "latex"])
def test_tables_of_comparisons(layout: str, run: Run, texts: Path) -> None:
    words = ("compare", "one", "other_way=two", "--refs", "ref0", "--trials", 100)
    code, out, _ = run(*words, "--format", layout)
    assert code == 0
    assert ("other\\_way" if layout == "latex" else "other_way") in out
    assert "p(boot)" in out
    assert "interval of difference" in out
    assert "BLEU|nrefs:1" in out


def test_numbers_of_comparisons(run: Run, texts: Path) -> None:
    words = ("compare", "one", "two", "again=one", "--refs", "ref0", "--format", "json")
    rows = json.loads(run(*words, "--trials", 500)[1])
    assert [row["system"] for row in rows[:3]] == ["one", "two", "again"]
    base, worse, same = rows[:3]
    assert base["difference"] is None
    assert worse["difference"] < 0.0
    assert worse["wins"] < 0.5
    assert (same["difference"], same["p_randomization"], same["p_bootstrap"]) == (0.0, 1.0, 1.0)
    assert same["wins"] == 0.5
    assert base["difference_interval"] is None
    low, high = worse["difference_interval"]
    assert low < worse["difference"] < high
    assert same["difference_interval"] == [0.0, 0.0]
    error_rate = rows[4]
    assert error_rate["metric"] == "TER-SACREBLEU"
    assert error_rate["difference"] > 0.0  # more errors
    assert error_rate["wins"] < 0.5


def test_runs_of_optimizers(run: Run, texts: Path) -> None:
    words = ("compare", "a=one,two", "b=two,two", "--refs", "ref0", "--trials", 50)
    base, other, *_ = json.loads(run(*words, "--format", "json")[1])
    assert (base["runs"], other["runs"]) == (2, 2)
    assert base["s_opt"] > 0.0 == other["s_opt"]
    assert other["p_bootstrap"] is None
    assert 0.0 < other["p_randomization"] <= 1.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("score", "empty", "empty"), "empty: the file has no sentences"),
        (("score", "one", "empty"), "empty: the file has no sentences"),
        (("score", "empty", "ref0"), "empty: the file is empty"),
        (("compare", "one", "empty", "--refs", "ref0"), "empty: the file is empty"),
    ],
)
def test_empty_files(words: tuple[str, ...], message: str, run: Run, texts: Path) -> None:
    Path("empty").touch()
    code, out, error = run(*words)
    assert (code, out, len(error.splitlines())) == (1, "", 1)
    assert message in error


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("compare", "one", "--refs", "ref0"), 2),
        (("compare", "one", "none", "--refs", "ref0"), 2),
        (("compare", "one", "one", "--refs", "ref0"), 2),
        (("score", "one", "ref0", "--metric", "SEMPOS"), 2),
        (("score", "one", "ref0", "--metric", "CHRF gamma:1"), 2),
        (("score", "one", "ref0", "--oracle"), 2),
        (("score", "one", "ref0", "--refs", "ref1"), 2),
        (("score", "none", "ref0"), 2),
        (("score", "ref0", "list"), 2),
    ],
)
def test_errors_are_one_line(words: tuple[str, ...], code: int, run: Run, texts: Path) -> None:
    found, out, error = run(*words)
    assert (found, out) == (code, "")
    assert len(error.splitlines()) == 1


RAW = {
    "raw0": ['The "red" house is old.', "She sees a small dog, today (in the park).", "Ärger!"],
    "raw1": ["The house that's red is old!", "Today, she sees a little dog in a park.", "ärger."],
    "out": ['The "Red" house is old.', "She sees one dog, today in the park.", "They left: ärger!"],
}


@pytest.mark.parametrize("tokenizer", ["13a", "intl", "zh", "char"])
@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("references", [("raw0",), ("raw0", "raw1")])
def test_tokenized_scores_are_sacrebleus(
    tokenizer: str, lowercase: bool, references: tuple[str, ...], run: Run, texts: Path
) -> None:
    from sacrebleu.metrics import BLEU, CHRF, TER

    for name, lines in RAW.items():
        (texts / name).write_text("\n".join(lines) + "\n")
    expected = [
        BLEU(tokenize=tokenizer, lowercase=lowercase),
        TER(normalized=True, case_sensitive=not lowercase),
        CHRF(),
    ]
    case = ",case:false" if lowercase else ""
    specifications = (f"BLEU tokenize:{tokenizer}{case}", f"TER-SACREBLEU tokenize:tercom{case}")
    flags = [word for each in (*specifications, "CHRF beta:2") for word in ("--metric", each)]
    code, out, _ = run("score", "out", *references, "--json", *flags)
    assert code == 0
    rows = json.loads(out)
    for row, metric in zip(rows, expected, strict=True):
        score = metric.corpus_score(RAW["out"], [RAW[name] for name in references]).score
        assert 100 * row["score"] == pytest.approx(score, rel=1e-9)
    assert f"|tok:{tokenizer}|" in rows[0]["signature"]


def test_compare_tokenized(run: Run, texts: Path) -> None:
    for name, lines in RAW.items():
        (texts / name).write_text("\n".join(lines) + "\n")
    flags = ("--metric", "BLEU tokenize:13a", "--trials", 10, "--samples", 10, "--format", "json")
    code, out, _ = run("compare", "base=raw1", "new=out", "--refs", "raw0", *flags)
    assert code == 0
    scores = {row["system"]: row["score"] for row in json.loads(out)}
    run_scores = {}
    for system, name in (("base", "raw1"), ("new", "out")):
        _, out, _ = run("score", name, "raw0", "--metric", "BLEU tokenize:13a", "--json")
        run_scores[system] = json.loads(out)[0]["score"]
    assert scores == run_scores


def test_tokenizer_without_its_package(
    run: Run, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mosesplug.metrics.tokenizers.find_spec", lambda name: None)
    code, out, error = run("score", "one", "ref0", "--metric", "BLEU tokenize:ko-mecab")
    assert (code, out) == (2, "")
    assert error.count("\n") == 1
    assert "pip install 'mosesplug[ko]'" in error
