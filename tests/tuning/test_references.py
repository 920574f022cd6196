"""Test runs whose references begin with sentence ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formats.references import reference_files
from mosesplug.errors import DataError
from mosesplug.settings.online import HeldOutSet
from mosesplug.tuning import tune
from mosesplug.tuning.references import read_run_references, read_text_references

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any


def number(path: Path, name: str = "utt-{:02}") -> None:
    """Begin each line of a file with an id."""
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{name.format(n)} {line}\n" for n, line in enumerate(lines)))


def test_ids_of_references_are_no_words(toy: Toy) -> None:
    plain = tune(toy.configuration("plain", maximum_iterations=1))
    for path in reference_files(toy.directory / "reference"):
        number(path)
    with pytest.raises(
        DataError, match=r"reference0?:1: the line begins with 'utt-00', which looks"
    ):
        tune(toy.configuration(maximum_iterations=1))
    found = tune(toy.configuration(maximum_iterations=1, ids=True))
    assert (found.weights, found.score) == (plain.weights, plain.score)
    words = tune(toy.configuration("words", maximum_iterations=1, ids=False))
    assert words.score < plain.score


def test_references_are_read_without_ids(toy: Toy) -> None:
    configuration = toy.configuration()
    plain = read_run_references(configuration, 12)
    for path in reference_files(toy.directory / "reference"):
        number(path, "{}")  # the numbers of the lines
    assert read_run_references(configuration, 12) == plain
    held_out = HeldOutSet(toy.directory / "input", toy.directory / "reference")
    assert plain == read_text_references(configuration, held_out.references, 12, held_out.input)
    number(toy.directory / "input", "{}")
    with pytest.raises(DataError, match="input:1: the line begins with '0', a sentence id that"):
        read_run_references(configuration, 12)


def test_manifests_are_references(toy: Toy) -> None:
    configuration = toy.configuration()
    plain = read_run_references(configuration, 12)
    for path in reference_files(toy.directory / "reference"):
        lines = path.read_text().splitlines()
        path.write_text("".join(f'{{"text": "{line}"}}\n' for line in lines))
    assert read_run_references(configuration, 12) == plain
