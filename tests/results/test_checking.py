"""What ``mosesplug check`` finds in data that is wrong, and that it finds nothing in sound data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mosesplug.cli.main import main

NOUNS = ("Haus", "Garten", "Hund", "Fluss", "Weg", "Winter")
THINGS = ("house", "garden", "dog", "river", "road", "winter")
SOURCE = [
    f"das {NOUNS[n % 6]} ist klein und {NOUNS[n // 6 % 6]} Nr {n} {'auch ' * (n % 7)}."
    for n in range(210)
]
TARGET = [
    f"the {THINGS[n % 6]} is small and {THINGS[n // 6 % 6]} no {n} {'too ' * (n % 7)}."
    for n in range(210)
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("src", SOURCE)
    write("ref", TARGET)
    write("list", make_list(str))
    words = zip(" ".join(SOURCE).split(), " ".join(TARGET).split(), strict=True)
    write("table", [f"{one} ||| {other} ||| 0.5 0.5" for one, other in dict.fromkeys(words)])


def write(name: str, lines: list[str]) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines))


def make_list(change: Callable[[str], str], features: int = 2) -> list[str]:
    lines = []
    for n, line in enumerate(TARGET):
        for k, text in enumerate((line, line.replace("small", "little"))):
            values = " ".join(f"F{i}= {k * (i + n % 3)}" for i in range(features))
            lines.append(f"{n} ||| {change(text)} ||| {values} ||| 0")
    return lines


def check(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    with pytest.raises(SystemExit) as end:
        main(["check", *words, "--json"])
    out, err = capsys.readouterr()
    assert end.value.code == code, err
    found: dict[str, Any] = json.loads(out)
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [each["name"] for each in found["warnings"]]


def test_sound_data(capsys: pytest.CaptureFixture[str]) -> None:
    found = check(capsys, "src", "ref", "--nbest", "list", "--phrase-table", "table", "--strict")
    assert found["warnings"] == []
    source, reference = found["texts"]
    assert (source["lines"], source["empty"], source["repeated"]) == (210, 0, 0)
    assert source["words"] == sum(len(line.split()) for line in SOURCE)
    assert reference["distinct"] == len({*" ".join(TARGET).split()})
    facts = found["facts"]
    assert facts["unknown words of source"] == facts["unreachable words of references"] == 0
    assert (facts["hypotheses of a sentence"], facts["dense features"]) == (2, 2)


CASES: dict[str, tuple[str, Callable[[], object], tuple[str, ...]]] = {
    "few sentences": (
        "few sentences",
        lambda: (write("src", SOURCE[:50]), write("ref", TARGET[:50])),
        (),
    ),
    "source empty": ("empty lines", lambda: write("src", ["", *SOURCE[1:]]), ()),
    "references empty": ("empty references", lambda: write("ref", ["", ""] * 105), ()),
    "repeated": (
        "repeated lines",
        lambda: (write("src", SOURCE[:105] * 2), write("ref", TARGET[:105] * 2)),
        (),
    ),
    "long": ("long lines", lambda: write("src", [f"{'ja ' * 120}.", *SOURCE[1:]]), ()),
    "shifted": ("alignment", lambda: write("ref", [*TARGET[3:], *TARGET[:3]]), ()),
    "one line": ("lengths", lambda: write("ref", [TARGET[0] * 6, *TARGET[1:]]), ()),
    "same text": ("reference is input", lambda: write("ref", SOURCE), ()),
    "markup": ("markup", lambda: write("ref", [f"<seg>{line}</seg>" for line in TARGET]), ()),
    "markers": (
        "texts",
        lambda: write("list", make_list(lambda text: text + " |0-4|")),
        ("--nbest", "list"),
    ),
    "many features": (
        "many features",
        lambda: write("list", make_list(str, 30)),
        ("--nbest", "list"),
    ),
    "missing": ("missing lists", lambda: write("list", make_list(str)[:300]), ("--nbest", "list")),
    "unknown": (
        "unknown words",
        lambda: write("table", ["das ||| the ||| 1"]),
        ("--phrase-table", "table"),
    ),
    "case": (
        "case",
        lambda: write(
            "table",
            [f"{a.lower()} ||| {b} ||| 1" for a, b in zip(SOURCE, TARGET, strict=True)],
        ),
        ("--phrase-table", "table"),
    ),
    "test": ("overlap", lambda: write("other", ["andere", SOURCE[7]]), ("--test", "other")),
    "train": ("overlap", lambda: write("other", SOURCE[:50]), ("--train", "other")),
    "train attached": (
        "punctuation",
        lambda: write("other", [line.replace(" .", ".") for line in SOURCE]),
        ("--train", "other"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_findings(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, spoil, options = CASES[case]
    spoil()
    found = check(capsys, "src", "ref", *options)
    assert name in names(found)
    assert name in names(check(capsys, "src", "ref", *options, "--strict", code=1))


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    write("ref", [f"<seg>{line}</seg>" for line in TARGET])
    shown = {}
    for layout in ("text", "tsv", "markdown"):
        with pytest.raises(SystemExit):
            main(["check", "src", "ref", "--format", layout])
        shown[layout] = capsys.readouterr().out
    assert "markup   210 of 210 reference lines have tags, as '<seg>', and" in shown["text"]
    assert "markup\t210 of 210 reference lines have tags" in shown["tsv"]
    assert "| markup | 210 of 210" in shown["markdown"]


def test_no_phrase_table(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["check", "src", "ref", "--phrase-table", "src"])
    assert end.value.code == 1
    assert "src:1: the line is not `source ||| target ||| scores`" in capsys.readouterr().err
