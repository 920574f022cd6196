"""``mosesplug compare --analysis`` as a user calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.cli.main import main

Run = Callable[..., tuple[int, str, str]]

REFERENCE = b"the cat sees a_dog\nit is <b>here</b> |\n\xff you go\n"
NEW = b"the cat sees a_dog\nit is $there$ |\n\xfe you go now\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls ``mosesplug compare``; its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("ref").write_bytes(REFERENCE)
    Path("base").write_bytes(b"a cat\n\nyou\n")
    Path("new").write_bytes(NEW)
    Path("short").write_bytes(b"one\ntwo\n")
    Path("counts").write_bytes(b"the\t9\n" * 100 + b"cat 1\n")

    def call(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["compare", "base", "new", "--refs", "ref", "--trials", "9", *words])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return call


def test_text(run: Run) -> None:
    code, out, _ = run("--metric", "WER", "--analysis", "--source", "ref", "--ngrams", "2")
    assert code == 0
    scores, _, analysis = out.partition("\nWord accuracy by frequency\n")
    assert scores == run("--metric", "WER")[1]
    lines = analysis.splitlines()
    assert max(map(len, lines)) <= 80
    start = lines.index("N-grams that new gets right more often than base")
    assert lines[start + 4 : start + 7] == [
        " ratio  base  new  n-gram",
        "0.6667     0    1  the cat sees a_dog",
        "0.6667     0    1  the cat sees",
    ]
    start = lines.index("Sentences where new is better than base")
    assert lines[start + 2 : start + 7] == [
        "sentence 0: WER 0.7500 to 0.0000 (-0.7500)",
        "  source     the cat sees a_dog",
        "  reference  the cat sees a_dog",
        "  base       a cat",
        "  new        the cat sees a_dog",
    ]
    # The score of sentence 2 stays the same: 2 of 3 words are wrong.
    start = lines.index("Sentences where base is better than new")
    assert lines[start + 2] == "none"


def test_long_names_and_sentences_are_wrapped(run: Run) -> None:
    Path("a-name-that-is-longer-than-most").write_bytes(b"word " * 40 + b"\n\n\n")
    code, out, _ = run("a-name-that-is-longer-than-most", "--metric", "WER", "--analysis")
    assert code == 0
    lines = out.splitlines()
    start = lines.index("  a-name-that-is-longer-than-most")
    assert lines[start + 1].strip() == " ".join(["word"] * 12)
    assert max(map(len, lines[lines.index("sentence 0: WER 0.7500 to 10.0000 (+9.2500)") :])) <= 80


@pytest.mark.parametrize("layout", ["markdown", "latex"])
def test_tables_for_papers(layout: str, run: Run) -> None:
    code, out, _ = run("--metric", "CHRF", "--analysis", "--format", layout)
    assert code == 0
    if layout == "markdown":
        assert "\n### Word accuracy by frequency\n" in out
        assert "\n| 0.6667 | 0 | 1 | the cat sees a\\_dog |\n" in out
        assert "\n|--:|--:|--:|:--|\n" in out
        assert "\n- reference: it is \\<b\\>here\\</b\\> |\n" in out
    else:
        assert "\n\\paragraph{Word accuracy by frequency}\n" in out
        assert "\n0.6667 & 0 & 1 & the cat sees a\\_dog \\\\\n" in out
        assert "\\begin{tabular}{rrrl}" in out
        assert "\n\\item[new] it is \\$there\\$ |\n" in out
        assert out.count("\\begin{") == out.count("\\end{")


def test_page(run: Run) -> None:
    code, out, _ = run("--metric", "BLEU", "--html", "page.html", "--source", "ref")
    assert (code, out) == (0, run("--metric", "BLEU")[1])
    page = Path("page.html").read_bytes().decode()
    assert "it is &lt;b&gt;here&lt;/b&gt; |" in page
    assert "BLEU|nrefs:1" in page


def test_scores_and_analysis_in_one_document(run: Run) -> None:
    _, out, _ = run("--metric", "BLEU", "--analysis", "--format", "json", "--quiet")
    document = json.loads(out)
    assert list(document) == ["scores", "words", "sentences", "ngrams", "examples"]
    assert document["scores"] == json.loads(run("--metric", "BLEU", "--format", "json")[1])
    assert document["examples"][0]["references"] == ["the cat sees a_dog"]


def test_scores_from_outside(run: Run) -> None:
    Path("a").write_text("-0.5\n0.25\n3\n")
    Path("b").write_text("-1\n0.75\n3\n")
    code, out, _ = run("--scores", "QE=a,b", "--metric", "QE", "--analysis")
    assert code == 0
    lines = out.splitlines()
    start = lines.index("Sentences by sentence score (QE)")
    # The range of the scores is -0.975 to 3, in steps of 0.5.
    assert [line.split() for line in lines[start + 3 : start + 7]] == [
        ["below", "-0.5", "base", "0"],
        ["new", "1", "-1.0000"],
        ["-0.5", "to", "0", "base", "1", "-0.5000"],
        ["new", "0"],
    ]
    start = lines.index("Sentences where new is better than base")
    assert lines[start + 2] == "sentence 1: QE 0.2500 to 0.7500 (+0.5000)"


def test_scores_without_references(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    del run
    Path("a").write_text("0.5\n0.25\n3\n")
    Path("b").write_text("1\n0\n3\n")
    words = "compare base new --scores QE=a,b:error --trials 9 --analysis --html page.html"
    with pytest.raises(SystemExit) as end:
        main([*words.split(), "--source", "ref"])
    assert not end.value.code
    _, *sections = capsys.readouterr().out.split("\nSentences ")
    heads = [section.splitlines()[0] for section in sections]
    assert heads == [
        "by sentence score (QE)",
        "where new is better than base",
        "where base is better than new",
    ]
    assert "sentence 1: QE 0.2500 to 0.0000 (-0.2500)" in sections[1]
    assert "sentence 0: QE 0.5000 to 1.0000 (+0.5000)" in sections[2]
    assert "  source  it is <b>here</b> |\n  base\n  new     it is $there$ |\n" in sections[1]
    page = Path("page.html").read_text()
    assert "<mark>" not in page
    assert "N-grams" not in page
    with pytest.raises(SystemExit):
        main([*words.split(), "--frequency-text", "ref"])
    assert "--frequency-text requires --refs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--source", "ref"), 2, "--source requires --analysis or --html"),
        (("--frequency-text", "ref"), 2, "--frequency-text requires --analysis or --html"),
        (("--html", "none/page.html"), 2, "--html none/page.html: there is no directory"),
        (("--html", "."), 2, "--html .: it is a directory"),
        (("--analysis", "--source", "short"), 1, "short: 2 lines, but the translations have 3"),
        (("--analysis", "--source", "none"), 2, "none: "),
        (("--analysis", "--frequency-text", "counts"), 1, "counts:101: 'cat 1' is not a word"),
        (("short", "--analysis"), 1, "short: 2 lines, but the references have 3"),
    ],
)
def test_errors(words: tuple[str, ...], code: int, message: str, run: Run) -> None:
    found, out, err = run(*words)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err
