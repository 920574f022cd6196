"""Lists and references that are not what they seem, by the calls and commands that people use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mosesplug
from mosesplug.cli.main import main

pytestmark = pytest.mark.usefixtures("few_restarts")

N = 30
REFERENCES = [f"the dog of house {n} sees a bird in the garden ." for n in range(N)]
MARKERS = "-report-segmentation (-t), or remove them: --transform \"sed -E 's/ *\\|"


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_lists("plain", str)
    write_lists("marked", lambda text: text.replace(" sees ", " |0-4| sees ") + " |5-9|")
    Path("refs").write_text("".join(f"{line}\n" for line in REFERENCES))
    some = (line if n % 2 else "" for n, line in enumerate(REFERENCES))
    Path("half").write_text("".join(f"{line}\n" for line in some))


def write_lists(name: str, change: Callable[[str], str]) -> None:
    Path(name).write_text(
        "".join(
            f"{n} ||| {change(text)} ||| LM0= {score} Words= {-n % 3} ||| {score}\n"
            for n, reference in enumerate(REFERENCES)
            for text, score in ((reference, -2), (reference.replace("sees", "saw"), -1))
        )
    )


def run(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Return the warnings of a command."""
    with pytest.raises(SystemExit) as end:
        main([*words])
    assert not end.value.code
    error = capsys.readouterr().err.splitlines()
    return [line for line in error if line.startswith("warning: ")]


def test_fits_have_warnings() -> None:
    plain = mosesplug.optimize("plain", references="refs").warnings
    assert not [text for text in plain if "references" in text]
    marked = mosesplug.optimize(
        "marked", references="refs", heldout_lists="marked", heldout_references="half"
    ).warnings
    assert marked[0].startswith(f"{N} of {N} translations have phrase boundaries of Moses' ")
    assert MARKERS.replace("--transform ", "transform=") in marked[0]
    assert any(text.startswith(f"held-out lists: 15 of {N} lines of ") for text in marked)


def test_lists_without_remedy_after_it() -> None:
    """The command of the message, as it is."""
    (message, *_) = mosesplug.optimize("marked", references="refs").warnings
    command = message.partition('transform="')[2].removesuffix('"')
    assert (
        mosesplug.optimize("marked", references="refs", transform=command).warnings
        == mosesplug.optimize("plain", references="refs").warnings
    )


@pytest.mark.parametrize(
    "words",
    [
        ("optimize", "--nbest", "marked", "--refs", "refs", "-o", "weights", "--quiet"),
        ("score", "marked", "refs", "--nbest"),
        ("oracle", "marked", "--refs", "refs"),
    ],
    ids=lambda words: words[0],
)
def test_commands_warn(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert MARKERS in run(capsys, *words)[0]
    plain = run(capsys, *("plain" if word == "marked" else word for word in words))
    assert not [line for line in plain if "references" in line]


def test_stored_lists_beside_other_references(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nbest", "import", "plain", "--refs", "refs", "store"])
    words = ("optimize", "--from", "store", "-o", "weights", "--quiet", "--refs")
    assert f"warning: 15 of {N} lines of reference 0 are empty: " in run(capsys, *words, "half")[0]
    assert not [line for line in run(capsys, *words, "refs") if "references" in line]


def test_translations_and_systems(capsys: pytest.CaptureFixture[str]) -> None:
    Path("blanks").write_text(
        "".join(f"{line}\n".replace(" a ", "\u00a0a ") for line in REFERENCES)
    )
    Path("lower").write_text("".join(f"{line.title()}\n" for line in REFERENCES))
    (blanks,) = run(capsys, "score", "blanks", "refs", "--samples", "0")
    assert "no-break spaces" in blanks
    assert "perl -CSD -pe 's/[^\\S\\n]/ /g'" in blanks
    assert not run(capsys, "score", "blanks", "refs", "--metric", "CHRF", "--samples", "0")
    words = ("compare", "one=refs", "two=blanks", "three=lower", "--refs", "refs", "--metric")
    two, three = run(capsys, *words, "BLEU", "--samples", "2", "--trials", "2")
    assert two.startswith("warning: two: ")
    assert three.startswith("warning: three: ")
    assert three.endswith("or set case:false for the metric")
    scores = mosesplug.score("blanks", "refs", "BLEU", samples=0)
    assert scores.warnings == (blanks.removeprefix("warning: "),)
    assert repr(scores).endswith(blanks)
