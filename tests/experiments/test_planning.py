"""The runs of an experiment, what they share, and which baseline each row has."""

from __future__ import annotations

import gzip
import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.errors import UsageError
from mosesplug.experiments.file import read_experiment
from mosesplug.experiments.planning import ExperimentPlan, plan_experiment
from mosesplug.optimizers.registry import algorithm, built_in_algorithms
from tests.experiments.conftest import HEAD, KBMIRA

Plan = Callable[..., ExperimentPlan]
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples" / "experiments").glob("*.toml"))
BENCHMARKS = sorted((ROOT / "tests" / "benchmarks").glob("*.toml"))

MORE = """
[features.sparse]
config = "moses.ini"
[tuning.large]
input = "input"
refs = "reference"
"""


def test_first_seeds_of_all_rows_come_first(plan: Plan) -> None:
    made = plan(
        f"{HEAD}{MORE}{KBMIRA}[systems.mert]\nalgorithm = 'mert'\nseeds = [7]\n"
        "features = 'dense'\ntuning = ['large']\n"
    )
    assert [row.label for row in made.rows] == [
        "kbmira/dense/small",
        "kbmira/dense/large",
        "kbmira/sparse/small",
        "kbmira/sparse/large",
        "mert/dense/large",
    ]
    labels = [f"{row.label} seed 1" for row in made.rows[:4]]
    assert [run.label for run in made.runs] == [
        *labels,
        "mert/dense/large seed 7",
        *(label.replace("seed 1", "seed 2") for label in labels),
    ]
    assert len({run.directory for run in made.runs}) == len(made.runs)


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [
        ("kbmira", ["small", "large", "small", "large", "large"]),
        ("kbmira/dense", ["small", "large", "small", "large", "large"]),
        ("kbmira/dense/small", ["small"] * 5),
        ("mert", ["large"] * 5),
    ],
)
def test_a_row_is_compared_on_its_own_tuning_set(
    baseline: str, expected: list[str], plan: Plan
) -> None:
    text = HEAD.replace('baseline = "kbmira"', f'baseline = "{baseline}"')
    made = plan(
        f"{text}{MORE}{KBMIRA}[systems.mert]\nalgorithm = 'mert'\nfeatures = 'dense'\n"
        "tuning = 'large'\n"
    )
    own = [made.baselines[row] for row in made.rows]
    assert [row.tuning for row in own] == expected
    assert {row.system for row in own} == {baseline.partition("/")[0]}
    features = {"kbmira": ["dense", "dense", "sparse", "sparse", "dense"]}
    assert [row.features for row in own] == features.get(baseline, ["dense"] * 5)


def test_an_ambiguous_baseline_is_an_error(plan: Plan) -> None:
    text = f"{HEAD}{MORE}{KBMIRA}features = 'dense'\ntuning = ['small', 'large']\n"
    third = '[tuning.third]\ninput = "input"\nrefs = "reference"\n'
    message = (
        "baseline: pro/dense/third could be compared with kbmira/dense/small, kbmira/dense/large:"
        " name features and tuning set, too, as kbmira/dense/small"
    )
    with pytest.raises(UsageError, match=message):
        plan(
            f"{text}{third}[systems.pro]\nalgorithm = 'pro'\nfeatures = 'dense'\ntuning = 'third'\n"
        )


def test_shared_files_have_the_first_sentences(plan: Plan, toy_directory: Path) -> None:
    source = (toy_directory / "input").read_bytes()
    (toy_directory / "input.gz").write_bytes(gzip.compress(source))
    made = plan(HEAD.replace('input = "input"\nrefs = "reference"\nsent', INPUT_GZ) + KBMIRA)
    texts = toy_directory / "results" / "texts"
    first = b"".join(source.splitlines(keepends=True)[:6])
    assert made.files[texts / "tuning.small.src"] == first
    for number in (0, 1):
        lines = (toy_directory / f"reference{number}").read_bytes().splitlines(keepends=True)
        assert made.files[texts / f"tuning.small.ref{number}"] == b"".join(lines[:6])
    assert not texts.exists()
    made.write_files()
    assert (texts / "tuning.small.src").read_bytes() == first


INPUT_GZ = 'input = "input.gz"\nrefs = "reference"\nsent'


def test_parts_share_the_sentences_out(plan: Plan, toy_directory: Path) -> None:
    text = HEAD.replace("sentences = 6", 'part = "1/2"')
    text = text.replace("[tests.whole]", '[tests.whole]\npart = "2/2"')
    made = plan(text + KBMIRA)
    texts = toy_directory / "results" / "texts"
    ours, others = (made.files[texts / f"{name}.src"] for name in ("tuning.small", "tests.whole"))
    every = (toy_directory / "input").read_bytes().splitlines()
    assert sorted((ours + others).splitlines()) == sorted(every)
    # In their order, and with their references.
    order = [line for line in every if line in ours.splitlines()]
    assert ours.splitlines() == order
    reference = (toy_directory / "reference0").read_bytes().splitlines()
    expected = [dict(zip(every, reference, strict=True))[line] for line in order]
    assert made.files[texts / "tuning.small.ref0"].splitlines() == expected


def test_models_get_absolute_names(plan: Plan, toy_directory: Path) -> None:
    folder = toy_directory / "system"
    folder.mkdir()
    (folder / "lm.bin.gz").touch()
    ini = (toy_directory / "moses.ini").read_text()
    ini = ini.replace("Toy name=LM0", "Toy name=LM0 path=lm.bin # path=lm.bin\n#")
    (folder / "moses.ini").write_text(ini)
    made = plan(HEAD.replace('"moses.ini"', '"system/moses.ini"') + KBMIRA)
    [written] = [data for path, data in made.files.items() if path.suffix == ".ini"]
    assert written == ini.replace("path=lm.bin #", f"path={folder}/lm.bin #").encode()


@pytest.mark.parametrize("path", EXAMPLES + BENCHMARKS, ids=lambda path: path.stem)
def test_the_files_of_the_manual_can_run(
    path: Path, toy_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All settings, names and files are checked on a toy system that has the files they name."""
    texts = {
        side: (toy_directory / name).read_bytes() * 800
        for side, name in (("src", "input"), ("ref", "reference0"))
    }
    recordings = toy_directory / "recordings"
    for place, inis in (
        ("multi30k-de-en-rich", ("moses.ini", "sparse.ini")),
        ("multi30k-de-en/model", ("moses.ini",)),
        ("multi30k-de-en/text", ()),
    ):
        (recordings / place).mkdir(parents=True)
        for ini in inis:
            shutil.copy(toy_directory / "moses.ini", recordings / place / ini)
    for side, language in (("src", "de"), ("ref", "en")):
        rich, plain = (recordings / name for name in ("multi30k-de-en-rich", "multi30k-de-en/text"))
        (rich / f"tune.{side}.gz").write_bytes(gzip.compress(texts[side], 1))
        lines = texts[side].splitlines(keepends=True)[:1014]
        for copy in (
            *(rich / f"{name}.{side}" for name in ("dev", "t2016", "t2017", "t2018")),
            *(plain / f"{name}.{language}" for name in ("dev", "test2016", "test2017")),
            *(toy_directory / f"{name}.{side}" for name in ("dev", "test")),
        ):
            copy.write_bytes(b"".join(lines))
    for program in (toy_directory / "home" / "bin" / "moses", toy_directory / "moses"):
        program.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(toy_directory / "decoder", program)
    monkeypatch.setenv("MOSES_HOME", str(toy_directory / "home"))
    monkeypatch.setenv("MOSES_RECORDINGS", str(recordings))
    for name in ("train.src", "train.ref", "tune.src", "tune.ref"):
        shutil.copy(recordings / "multi30k-de-en-rich" / f"dev.{name[-3:]}", name)
    (toy_directory / "model").mkdir()
    shutil.copy("moses.ini", "model")
    shutil.copy(ROOT / "moses-config" / "demo" / "sparse.toml", toy_directory)
    made = plan_experiment(read_experiment(path))
    assert made.runs
    assert all(json.dumps(run.definition) for run in made.runs)


def test_files_that_settings_name_are_part_of_the_definition(
    plan: Plan, toy_directory: Path
) -> None:
    (toy_directory / "start").write_text("wt_ein 0.5\n")
    text = HEAD + KBMIRA + 'sparse-weights = "start"\n'
    before = plan(text).runs[0].definition
    (toy_directory / "start").write_text("wt_ein 0.25\n")
    after = plan(text).runs[0].definition
    assert before["settings"] == after["settings"]
    assert before["inputs"]["sparse-weights"] != after["inputs"]["sparse-weights"]
    held_out = [toy_directory / f"held-out{number}" for number in (0, 1)]
    for path in held_out:
        shutil.copy("reference0", path)
    text = HEAD + KBMIRA + 'heldout = "input"\nheldout-refs = "held-out"\n'
    text += 'monitor = ["news=input,held-out"]\n'
    before = plan(text).runs[0].definition
    shutil.copy("reference1", held_out[1])
    after = plan(text).runs[0].definition
    assert before["inputs"]["heldout"] == after["inputs"]["heldout"]
    assert before["inputs"]["heldout-refs"] != after["inputs"]["heldout-refs"]
    assert before["inputs"]["monitor"] != after["inputs"]["monitor"]


def test_there_are_files_of_the_manual() -> None:
    names = {path.stem for path in EXAMPLES}
    assert names >= {"watanabe-2012", "green-2013", "eidelman-2013", "sparse-features", "demo"}


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_benchmarks_have_every_algorithm_in_every_regime(path: Path) -> None:
    systems = tomllib.loads(path.read_text())["systems"]
    entries = [algorithm(name) for name in built_in_algorithms()]
    expected = {entry.name for entry in entries}
    expected |= {f"forest-{entry.name}" for entry in entries if entry.graphs}
    expected |= {f"online-{entry.name}" for entry in entries if entry.learner is not None}
    others = {"mert-restarts", "untuned", "forest-redecode"}
    named = {name for name in systems if not name.startswith("moses-")}
    assert named - others == expected
