"""Settings files: a run is repeated from what it left, and mistakes are named by file and key."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from mosesplug.cli.main import main
from mosesplug.cli.run.mert_options import read_command_line
from mosesplug.cli.run.mert_settings import make_script_plan
from mosesplug.errors import UsageError
from mosesplug.settings.build import collect_values, make_plan
from mosesplug.settings.toml import (
    format_settings,
    format_template,
    overlay_settings,
    read_settings,
    write_settings,
)
from tests.tuning.conftest import make_toy


@pytest.fixture
def toy(tmp_path: Path) -> dict[str, str]:
    """The files of a toy system."""
    make_toy(tmp_path, sentences=8)
    names = {"input": "input", "refs": "reference", "decoder": "decoder", "config": "moses.ini"}
    return {name: str(tmp_path / file) for name, file in names.items()}


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*map(str, words)])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    "words",
    [
        [
            *("tune", "--nbest=5", "--algorithm=mert", "--option=restarts=1"),
            *("--range=LM0:0..1", "--max-iterations=2"),
        ],
        ["tune", "--nbest=5", "--algorithm=kbmira", "--epochs=2", "--max-iterations=1"],
        [
            *("tune", "--nbest=5", "--algorithm=adagrad", "--online", "--online-decoder=process"),
            *("--epochs=1", "--shards=2", "--async", "--async-order=fixed", "--seed=3"),
        ],
        ["tune", "--nbest=5", "--algorithm=pro", "--max-iterations=1", "--runs=2"],
        ["mert-moses", "--nbest=5", "--maximum-iterations=2", "--random-restarts=1", "--nocase"],
        [
            *("mert-moses", "--nbest=5", "--maximum-iterations=2", "--batch-mira"),
            *("--batch-mira-args=-J 3 --model-bg", "--predictable-seeds", "--return-best-dev"),
        ],
    ],
    ids=" ".join,
)
def test_a_run_is_repeated_from_its_settings(
    toy: dict[str, str], tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    program, *options = words
    first, second = tmp_path / "first", tmp_path / "second"
    assert run(program, *toy.values(), *options, f"--working-dir={first}", "--threads=1") == 0
    left = first / "settings.toml"
    again = f"--working-dir={second}"
    assert run("tune", "--settings", left, again) == 0, capsys.readouterr().err
    for name in ("moses.ini", "run2.dense"):
        made = [place / name for place in (first, second)]
        if made[0].exists():
            texts = [
                each.read_bytes().replace(str(place).encode(), b"")
                for each, place in zip(made, (first, second), strict=True)
            ]
            assert _without_dates(texts[0]) == _without_dates(texts[1])
    repeated = (second / "settings.toml").read_text()
    assert repeated == left.read_text().replace(str(first), str(second))


def _without_dates(text: bytes) -> list[bytes]:
    return [line for line in text.splitlines() if not line.startswith(b"# ")]


def test_the_command_line_wins(toy: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    write_settings(file, {**toy, "nbest": 7, "max-iterations": 1, "predictable-seeds": True})
    words = [f"--settings={file}", f"--working-dir={tmp_path}/w", "--nbest=5", "--seed=4"]
    assert run("tune", *words, "--option=epochs=1") == 0
    left = tomllib.loads((tmp_path / "w" / "settings.toml").read_text())
    assert left["decoder"]["nbest"] == 5
    assert left["learning"]["seed"] == 4
    assert left["learning"]["max-iterations"] == 1
    assert left["learning"]["predictable-seeds"] is False


@pytest.mark.parametrize(
    ("file", "given", "both"),
    [
        ({"online": True, "online-servers": 2}, {"online": False}, {"online": False}),
        ({"epochs": 3}, {"option": {"epochs": "2"}}, {"option": {"epochs": "2"}}),
        ({"option": {"a": 1, "b": 1}}, {"option": {"b": 2}}, {"option": {"a": 1, "b": 2}}),
        ({"select": "average"}, {"last": True}, {"last": True}),
        ({"workers": "threads"}, {"scheduler": "tcp://a:1"}, {"scheduler": "tcp://a:1"}),
    ],
)
def test_settings_that_the_command_line_excludes_are_omitted(
    file: dict[str, Any], given: dict[str, Any], both: dict[str, Any]
) -> None:
    assert overlay_settings(file, given) == both


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[decoder]\nnbset = 5",
            r"run.toml: \[decoder\] nbset: unknown.* Did you mean nbest",
        ),
        ("[decoder]\nnbest = '5'", r"\[decoder\] nbest: expected an integer, not \"5\""),
        ("[decoder]\nnbest = true", "expected an integer, not true"),
        ("[online]\nonline = 1", "expected true or false, not 1"),
        ("[learning]\nmin-change = 'x'", "expected a number"),
        ("[learning]\nalgorithm = 3", "expected a string"),
        ("[learning]\nactive = 'LM0'", "expected a list of strings"),
        ("[learning]\noption = 3", "expected a table"),
        ("[learning]\nnbest = 5", r"nbest: belongs in the table \[decoder\]"),
        ("[lerning]\nseed = 5", r"unknown table \[lerning\]. Did you mean learning"),
        ("nbest = 5", r"nbest belongs in the table \[decoder\]"),
        ("[learning]\nmax-iterations = 1\nmaximum-iterations = 1", "given twice"),
        ("[decoder]\nnbest = =", "not valid TOML: .*line 2"),
    ],
)
def test_errors_have_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_settings(file)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the settings file .*none: No such file"):
        read_settings(tmp_path / "none")


def test_values_are_checked_as_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[decoder]\nnbest = 0\n")
    assert run("tune", "a", "b", "c", "d", "--settings", file) == 2
    assert "--nbest must be at least 1, not 0" in capsys.readouterr().err


def test_every_kind_of_value_is_read_as_it_was_written(tmp_path: Path) -> None:
    values = {
        "input": 'a "quoted"\\ path\n\x7f\x01é',
        "working-dir": b"not utf-8 \xff".decode(errors="surrogateescape"),
        "decoder-timeout": 1e-05,
        "max-drop": float("inf"),
        "nbest": 3,
        "forest": True,
        "active": ["LM0", "tm_1"],
        "option": {"a": True, "b c": 1.5, "d": "x"},
    }
    write_settings(tmp_path / "s.toml", values)
    assert read_settings(tmp_path / "s.toml") == values


def test_the_template_is_a_settings_file(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(format_template())
    values = read_settings(file)
    assert values["nbest"] == 100


def test_all_groups_survive_a_round_trip(toy: dict[str, str], tmp_path: Path) -> None:
    heldout = f"--heldout={toy['input']}", f"--heldout-refs={toy['refs']}"
    (tmp_path / "graphs").mkdir()
    lines = [
        ["--algorithm=oro", "--online", "--online-servers=2", *heldout, "--heldout-every=3"],
        ["--algorithm=oro", "--shards=3", "--mixing=select", "--keep=7", "--workers=processes"],
        ["--lattice-mert", "--redecode-every=2", "--activate-features=LM0_0,tm"],
        ["--jobs=1", "--decoder-flags=-v 0 -x 'a b'", "--decoder-timeout=5", "--inputtype=2"],
        [*heldout, f"--heldout-decoder=forest:{tmp_path}/graphs", "--patience=2"],
        ["--mertargs=--sctype BLEU,TER --scconfig weights:0.6+0.4,case:false"],
        ["--transform-decoded-file=sed s/a/b/", "--historic-interpolation=0.5"],
        [f"--filtercmd={toy['decoder']} -b 'c d'", "--use-config-weights-for-first-run"],
    ]
    for words in lines:
        plan, _ = make_script_plan(read_command_line([*toy.values(), *words]))
        configuration = plan.configuration
        values = collect_values(configuration, 5)
        file = tmp_path / "settings.toml"
        write_settings(file, values)
        again = make_plan(read_settings(file)).configuration
        assert collect_values(again, 5) == values
        assert format_settings(collect_values(again)) == format_settings(values)
        assert again.decoding == configuration.decoding
        assert (again.online, again.held_out) == (configuration.online, configuration.held_out)
        assert again.optimization.sharding == configuration.optimization.sharding
        assert again.metric.signature() == configuration.metric.signature()


@pytest.mark.parametrize(
    "words",
    [
        ["--batch-mira", "--batch-mira-args=-J 3", "--nocase", "--threads=2"],
        ["--random-restarts=3", "--mertargs=--sctype TER", "--select=average"],
        ["--algorithm=adagrad", "--online", "--epochs=2", "--shards=2"],
    ],
)
def test_mert_moses_reads_settings_too(
    toy: dict[str, str], tmp_path: Path, words: list[str]
) -> None:
    plan, _ = make_script_plan(read_command_line([*toy.values(), *words]))
    values = collect_values(plan.configuration, 5)
    file = tmp_path / "run.toml"
    write_settings(file, values)
    again, notes = make_script_plan(read_command_line([f"--settings={file}"]))
    assert collect_values(again.configuration, 5) == values
    assert not notes
    again, _ = make_script_plan(read_command_line([f"--settings={file}", "--nbest=7", "--nocase"]))
    assert again.configuration.decoding.nbest == 7
    assert "case:lc" in again.configuration.metric.signature()
    assert again.configuration.metric.name == plan.configuration.metric.name


def test_mert_moses_repeats_runs(toy: dict[str, str]) -> None:
    plan, _ = make_script_plan(read_command_line([*toy.values(), "--runs=3", "--select=average"]))
    assert (plan.repeats.runs, plan.select_run) == (3, "average")
