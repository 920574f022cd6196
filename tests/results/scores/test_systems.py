"""Working directories in the place of files of translations, and of stores."""

from __future__ import annotations

import json
from dataclasses import replace
from os import fspath
from pathlib import Path
from typing import Any

import pytest

from mosesplug.errors import DataError, StoreError, UsageError
from mosesplug.results.scores.comparison import parse_systems
from mosesplug.results.scores.decodings import RunDecoding, find_decodings
from mosesplug.tuning import tune
from mosesplug.tuning.workdir.stores import find_store
from tests.results.runs import make_run
from tests.tuning.conftest import decoder_in_process, make_toy

__all__ = ["decoder_in_process"]

FIRST_BEST = (
    [b"the house is red old", b"she sees one dog", b"they went home"],
    [b"the red house is old", b"she sees a small dog today", b"they went home"],
)
"""The first hypotheses of both iterations of ``make_run``."""


def a_run(directory: Path, result: tuple[float, float] | None) -> None:
    """Make a run of iterations with the weights 1 1 and 1 3, and maybe a result."""
    make_run(directory)
    if result is not None:
        weights = dict(zip(("LM0_0", "TM0_0"), result, strict=True))
        summary = {"result": {"decoded_in_iteration": None, "weights": weights}}
        (directory / "summary.json").write_text(json.dumps(summary))
    for number in (1, 2):
        (directory / f"run{number}.out").write_text(f"{number}\n")


@pytest.mark.parametrize(
    ("result", "iteration", "note"),
    [
        ((2.0, 2.0), 1, ""),
        ((0.25, 0.75), 2, ""),
        ((1.0, 5.0), 2, "was not decoded with its result"),
        (None, 2, "is not finished"),
    ],
)
def test_a_run_stands_for_the_decoding_with_equal_weights_or_the_last(
    tmp_path: Path, result: tuple[float, float] | None, iteration: int, note: str
) -> None:
    a_run(tmp_path, result)
    (found,) = find_decodings(tmp_path)
    assert found.translation == tmp_path / f"run{iteration}.out"
    assert note in found.note
    assert bool(found.note) == bool(note)
    # Without the files, the store has the decoder's first translations.
    for path in tmp_path.glob("run*.out"):
        path.unlink()
    (found,) = find_decodings(tmp_path)
    assert found.translation == FIRST_BEST[iteration - 1]


def test_directories_of_several_runs_and_names(tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in (2, 1, 10):
        a_run(many / f"run.{number}", (1.0, 3.0))
    (many / "runs.json").write_text("{}")
    (many / "run.4").mkdir()  # not begun
    paths = tuple(many / f"run.{number}" / "run2.out" for number in (1, 2, 10))
    plain = tmp_path / "plain"
    plain.write_text("a\n")
    one = many / "run.2"
    systems = parse_systems([f"base={many}", f"mixed={plain},{one}"])
    assert [(system.name, [*map(fspath, system.translations)]) for system in systems] == [
        ("base", [*map(str, paths)]),
        ("mixed", [str(plain), str(paths[1])]),
    ]
    with pytest.raises(UsageError, match="SYSTEM nowhere: No such file"):
        parse_systems(["base=nowhere", str(one)])
    with pytest.raises(StoreError, match=r"holds 3 runs.*many/run\.1, .*run\.2, .*run\.10$"):
        find_store(many)


def test_directories_of_the_script(tmp_path: Path) -> None:
    for number, values in enumerate(("0.5 0.5", "0.25 0.75"), start=1):
        (tmp_path / f"run{number}.dense").write_text(
            "".join(f"TM0= {value}\n" for value in values.split())
        )
        (tmp_path / f"run{number}.out").write_text("a\n")
    (found,) = find_decodings(tmp_path)
    assert "is not finished" in found.note
    ini = tmp_path / "moses.ini"
    ini.write_text("[feature]\nX name=TM0 num-features=2\n[weight]\nTM0= 1 1\n")
    assert find_decodings(tmp_path) == [RunDecoding(tmp_path / "run1.out")]
    ini.write_text("[weight]\nTM0= 1 2\n")
    (found,) = find_decodings(tmp_path)
    assert (found.translation, bool(found.note)) == (tmp_path / "run2.out", True)


def test_other_directories_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not the working directory of a run"):
        find_decodings(tmp_path)


@pytest.mark.usefixtures("decoder_in_process")
def test_decoding_with_the_result(tmp_path: Path) -> None:
    system: Any = make_toy(tmp_path)
    configuration = system.configuration("work", maximum_iterations=1)
    work = configuration.working_directory
    tune(replace(configuration, select="last"))
    (found,) = find_decodings(work)
    assert "was not decoded with its result" in found.note
    before = sorted(path.name for path in work.iterdir())
    (decoded,) = find_decodings(work, decode=True)
    assert decoded.note == ""
    assert isinstance(decoded.translation, list)
    assert sorted(path.name for path in work.iterdir()) == before
    # The next iteration decodes with the same weights.
    tune(replace(system.configuration("work", maximum_iterations=2), existing="continue"))
    assert b"".join(line + b"\n" for line in decoded.translation) == (
        (work / "run2.out").read_bytes()
    )
