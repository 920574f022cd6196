"""``mosesplug.check``: files and texts in memory, messages, printed reports and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mosesplug
from mosesplug.metrics import metric
from tests.api.examples import write_example_files

LISTS = "run1.best100.out.gz"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_example_files(tmp_path)
    monkeypatch.chdir(tmp_path)


def read(name: str) -> list[str]:
    return Path(name).read_text("utf-8").splitlines()


def test_texts_in_memory_are_checked_as_files_are() -> None:
    files = mosesplug.check("dev.fr", Path("dev.en"), nbest=LISTS, train="dev.fr", test="dev.fr")
    memory = mosesplug.check(
        read("dev.fr"),
        [read("dev.en")],
        nbest=[mosesplug.read_nbest(LISTS)],
        train=read("dev.fr"),
        test=read("dev.fr"),
        metric=metric("BLEU"),
    )
    assert memory == files
    assert [row["name"] for row in files.table] == [
        "source",
        "reference",
        "training text",
        "test set",
    ]
    assert files.table[1]["words"] == sum(len(line.split()) for line in read("dev.en"))
    assert [sign.name for sign in files.signs].count("overlap") == 2
    assert files.warnings == tuple(sign.message for sign in files.signs)


def test_messages_name_keywords() -> None:
    lists = [
        [(f"{text} {n}", *(n * value for value in range(50))) for n in (0, 1)]
        for text in read("dev.en")
    ]
    found = mosesplug.check("dev.fr", "dev.en", nbest=lists)
    (message,) = (sign.message for sign in found.signs if sign.name == "many features")
    assert message.endswith("Give more sentences, or tune fewer features (active)")


def test_the_metric_says_how_texts_are_read() -> None:
    attached = [line + "," for line in read("dev.fr")] * 60
    detached = [line + " ," for line in read("dev.fr")] * 60
    names = [
        {
            sign.name
            for sign in mosesplug.check(detached, detached, train=attached, metric=how).signs
        }
        for how in ("BLEU", "BLEU tokenize:13a")
    ]
    assert names[0] - names[1] == {"punctuation"}


def test_a_report_prints_its_tables() -> None:
    found = mosesplug.check("dev.fr", "dev.en", test="dev.en")
    tables = repr(found).split("\n\n")
    assert [table.split()[0] for table in tables] == ["text", "figure", "warning"]
    assert found._repr_html_().count("<table") == 3
    lines = [f"{'mot ' * (1 + n % 9)}{n}" for n in range(210)]
    sound = mosesplug.check(lines, [line.replace("mot", "word") for line in lines])
    assert repr(sound).endswith("\n\nno warnings")
    assert sound._repr_html_().endswith("<p>no warnings</p>")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"references": ["a"]}, mosesplug.DataError, "references has 1 sentences, but source has"),
        ({"source": ["a"]}, mosesplug.FormatError, "dev.en: 4 lines, but the input has 1"),
        ({"source": 5}, mosesplug.UsageError, "source must be a sequence of texts"),
        ({"nbest": 5}, mosesplug.UsageError, "nbest is a int: give an NBest or a file"),
        ({"nbest": []}, mosesplug.UsageError, "nbest is empty"),
        ({"metric": 5}, mosesplug.UsageError, "metric is 5: give a name"),
        ({"metric": "BLUE"}, mosesplug.UsageError, "BLUE"),
        ({"phrase_table": "dev.en"}, mosesplug.FormatError, "dev.en:1: the line is not `source"),
    ],
)
def test_errors_name_the_argument(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        mosesplug.check(**{"source": "dev.fr", "references": "dev.en"} | arguments)
