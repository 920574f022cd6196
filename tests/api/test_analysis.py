"""Test the analysis of systems from texts and from files, against the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosesplug
from mosesplug.cli.main import main

REFERENCES = ["the house is small", "yes it is", "we see the old town", "\ufffd"]
BASE = ["a house is small", "yes it is", "we see a old town", "x"]
NEW = ["the house is small", "yes it is is", "we see town", "x"]
SOURCE = ["das Haus ist klein", "ja", "wir sehen die Altstadt", "?"]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    texts = {"references": REFERENCES, "base": BASE, "new": NEW, "source": SOURCE}
    for name, lines in texts.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    Path("counts").write_text("the\t1000\nhouse\t3\n")
    return tmp_path


@pytest.mark.usefixtures("directory")
def test_tables_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = "compare base=base new=base,new --refs references --metric WER --metric BLEU"
    options = "--samples 5 --trials 5 --analysis --source source --frequency-text counts"
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), *options.split(), "--format", "json"])
    assert not ended.value.code
    printed = json.loads(capsys.readouterr().out)
    forms: list[tuple[Any, ...]] = [
        ({"base": "base", "new": [Path("base"), Path("new")]}, "references", "source", "counts"),
        (
            {"base": BASE, "new": [BASE, NEW]},
            [REFERENCES],
            SOURCE,
            {"the": 1000, "house": np.int64(3)},
        ),
    ]
    for systems, references, source, frequencies in forms:
        found = mosesplug.analyze(
            systems, references, ["WER", "BLEU"], source=source, frequencies=frequencies
        )
        assert printed["examples"]
        for name in ("words", "sentences", "ngrams", "examples"):
            rows = [dict(row) for row in getattr(found, name)]
            for row in rows:
                if "references" in row:
                    row["references"] = row["references"].split("\n")
            assert json.loads(json.dumps(rows).replace("NaN", "null")) == printed[name]
    assert found.words["bucket"].tolist()[-1] == "all"
    assert found.examples[0]["source"] in SOURCE
    for shown in (repr(found), found._repr_html_()):
        assert "1000 or more" in shown


def test_page(tmp_path: Path) -> None:
    systems = {"base": BASE, "new": NEW}
    analysis = mosesplug.analyze(systems, REFERENCES, "WER", examples=1, ngrams=0)
    assert len(analysis.ngrams) == 0
    assert analysis.ngrams.columns[0] == "kind"
    assert len(analysis.examples) == 2
    scores = mosesplug.compare(systems, REFERENCES, "WER", samples=5, trials=5)
    path = analysis.write_html(tmp_path / "page.html", scores=scores, title="WMT")
    page = path.read_text()
    assert "<title>WMT</title>" in page
    assert "WER|nrefs:1" in page


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"systems": {"a": BASE}}, "give two systems or more"),
        ({"systems": {"a": BASE, "b": BASE[1:]}}, r"systems\['b'\] has 3 texts"),
        ({"source": SOURCE[1:]}, "source has 3 texts, but there must be 4"),
        ({"frequencies": ["the"]}, "frequencies must be a file, or a mapping"),
        ({"frequencies": {"the": -1}}, r"frequencies\['the'\] is -1: give an integer of at"),
        ({"frequencies": "missing"}, "missing: "),
        ({"source": "missing"}, "missing: "),
        ({"ngrams": -1}, "ngrams is -1"),
        ({"examples": 1.5}, "examples is 1.5"),
        ({"metrics": "BLUE"}, "unknown metric"),
    ],
)
def test_errors(keywords: dict[str, Any], message: str) -> None:
    arguments = {"systems": {"a": BASE, "b": NEW}, "references": REFERENCES, **keywords}
    with pytest.raises((mosesplug.UsageError, mosesplug.FormatError), match=message) as caught:
        mosesplug.analyze(**arguments)
    assert "\n" not in str(caught.value)
