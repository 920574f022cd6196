"""Learn weights for each domain of a mixed tuning set, as a user does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mosesplug
from mosesplug.cli.main import main
from mosesplug.errors import DataError, UsageError

LABELS = ["news", "talks"] * 10


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lists in which the weight of A must be positive in one domain, negative in the other."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    lines, references = [], []
    for sentence, label in enumerate(LABELS):
        references.append(f"a b c d{sentence}\n")
        sign = 1 if label == "news" else -1
        for wrong in range(4):
            text = " ".join(["a", "b", "c", f"d{sentence}"][wrong:] + ["x"] * wrong)
            lines.append(f"{sentence} ||| {text} ||| A= {-sign * wrong} B= {rng.normal()} ||| 0\n")
    Path("lists").write_text("".join(lines))
    Path("refs").write_text("".join(references))
    Path("labels").write_text("".join(f"{label}\n" for label in LABELS))
    return tmp_path


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["optimize", "--nbest", "lists", "--refs", "refs", *words])
    return int(end.value.code or 0)


@pytest.mark.parametrize("algorithm", ["mert", "kbmira", "perceptron"])
def test_each_domain_gets_weights_of_its_own(algorithm: str, lists: Path) -> None:
    given = {"references": lists / "refs", "algorithm": algorithm, "initial": {"A": 0.1, "B": 0.1}}
    plain = mosesplug.optimize(lists / "lists", **given)
    assert plain.score < 0.9
    assert not plain.domains
    fit = mosesplug.optimize(lists / "lists", domains=LABELS, **given)
    assert fit.score == 1.0
    assert fit.domains["news"]["A"] > 0.0 > fit.domains["talks"]["A"]
    assert list(fit.weights) == ["A", "B"]
    assert fit.domain_scores["end"].tolist() == [1.0, 1.0]
    assert fit.domain_scores["domain"].tolist() == ["news", "talks"]


def test_held_out_sentences_are_decided_with_the_weights_of_their_domain(lists: Path) -> None:
    fit = mosesplug.optimize(
        *("lists",), references="refs", domains="labels", held_out=0.3, algorithm="kbmira"
    )
    assert fit.held_out == 1.0
    assert fit.domain_scores["held_out"].tolist() == [0, 0, 1, 1]
    found = mosesplug.cross_validate(
        *("lists",), references="refs", domains=LABELS, folds=2, algorithm="kbmira"
    )
    assert found.held_out > found.start + 0.2


def test_the_command_writes_a_file_for_each_domain(
    lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--domains", "labels", "--algorithm", "kbmira", "-o", "w.json") == 0
    said = capsys.readouterr().err
    assert "in 2 domains\n" in said
    assert any(line.startswith("talks ") and "1.000000" in line for line in said.splitlines())
    fit = mosesplug.optimize("lists", references="refs", domains="labels", algorithm="kbmira")
    fit.save("api.json")
    for ending in ("", ".news", ".talks"):
        assert Path(f"w.json{ending}").read_bytes() == Path(f"api.json{ending}").read_bytes()
    assert len(fit.rerank("lists").texts) == 20


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("news\n" * 20, (), "labels: fewer than two domains. Label the sentences"),
        (
            "news\nol talk\n" * 10,
            (),
            "labels:2: 'ol talk' is not the label of a domain. Use letters",
        ),
        ("news\n\n" * 10, (), "labels:2: '' is not the label"),
        ("news\ntalks\n", (), "--domains has 2 labels, but the lists have sentence 19"),
        ("news\ntalks\n" * 10, ("--bound", "A:0.."), "--domains and --bound exclude each other"),
    ],
)
def test_bad_labels(
    text: str, words: tuple[str, ...], said: str, lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("labels").write_text(text)
    code = run("--domains", "labels", "-o", "w", *words)
    assert code in (1, 2)
    assert said in capsys.readouterr().err
    assert not Path("w").exists()


def test_more_labels_than_sentences_are_a_warning(lists: Path) -> None:
    fit = mosesplug.optimize("lists", references="refs", domains=[*LABELS, "web"])
    assert any("1 more sentence than the lists" in each for each in fit.warnings)


def test_arguments_that_exclude_each_other(lists: Path) -> None:
    with pytest.raises(UsageError, match="domains and bounds exclude each other"):
        mosesplug.optimize("lists", references="refs", domains=LABELS, bounds={"A": (0, 1)})
    with pytest.raises(UsageError, match=r"domains\[1\]: 'a b' is not the label"):
        mosesplug.optimize("lists", references="refs", domains=["a", "a b"])
    with pytest.raises(DataError, match="domains has 2 labels"):
        mosesplug.optimize("lists", references="refs", domains=["a", "b"])


def test_output_is_required(lists: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--domains", "labels") == 2
    assert "give --output FILE" in capsys.readouterr().err
