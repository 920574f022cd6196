"""Experiment files: keys, names, paths; each mistake is one error with file, key and remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.errors import UsageError
from mosesplug.experiments.file import read_experiment
from mosesplug.experiments.planning import ExperimentPlan
from tests.experiments.conftest import HEAD, KBMIRA

Plan = Callable[..., ExperimentPlan]


def change(old: str, new: str) -> str:
    """Return the toy experiment with one text replaced."""
    assert old in HEAD + KBMIRA
    return (HEAD + KBMIRA).replace(old, new)


def add(text: str) -> str:
    """Return the toy experiment with a text at its end."""
    return HEAD + KBMIRA + text


BAD = {
    "not TOML": ("baseline = ", r"toy.toml: not valid TOML: Invalid value"),
    "unknown key": (
        f"sead = 3\n{HEAD}{KBMIRA}",
        r"toy.toml: sead: unknown key. Did you mean seeds",
    ),
    "unknown table": (add("[test.one]\n"), r"toy.toml: test: unknown key. Did you mean tests\?"),
    "no baseline": (
        change('baseline = "kbmira"', ""),
        r"toy.toml: baseline: required key is missing. Add it: System that",
    ),
    "other baseline": (
        change('baseline = "kbmira"', 'baseline = "kbmirra"'),
        r"baseline: there is no system kbmirra. Did you mean kbmira\?",
    ),
    "other row": (
        change('baseline = "kbmira"', 'baseline = "kbmira/sparse"'),
        r"baseline: the table has no row kbmira/sparse. Write SYSTEM, .* are kbmira/dense/small",
    ),
    "no systems": (HEAD, r"\[systems.NAME\]: there is no such table: add one or more"),
    "unknown setting": (
        add("algoritm = 'mert'\n"),
        r"\[systems.kbmira\] algoritm: unknown key. Did you mean algorithm\?",
    ),
    "wrong type": (add("nbest = 'many'\n"), r"\[systems.kbmira\] nbest: expected .*, not \"many\""),
    "unknown algorithm": (
        add("algorithm = 'kbmirra'\n"),
        r"\[systems.kbmira\]: .*kbmirra.* Did you mean kbmira\?",
    ),
    "unknown option": (
        change("epochs = 2", "epoch = 2"),
        r"\[systems.kbmira\]: unknown option 'epoch' of kbmira. Did you mean epochs\?",
    ),
    "batch algorithm online": (
        add("algorithm = 'kbmira'\nonline = true\n"),
        r"\[systems.kbmira\]: kbmira learns from all lists at once",
    ),
    "setting of the experiment": (add("seed = 3\n"), r"\[systems.kbmira\] seed: give seeds"),
    "directory of a system": (
        add("working-dir = 'work'\n"),
        r"\[systems.kbmira\] working-dir: each run has a directory of its own: leave it out",
    ),
    "two names for one directory": (
        add("[systems.KBMIRA]\n"),
        r"\[systems.KBMIRA\]: kbmira and KBMIRA would write into one directory where .*rename one",
    ),
    "name of no directory": (
        add('[systems."a/b"]\n'),
        r"\[systems.a/b\]: the name is that of a directory, too",
    ),
    "a seed twice": (
        change("seeds = 2", "seeds = [1, 1]"),
        r"seeds: a seed is given twice, and both runs would write into one directory: remove one",
    ),
    "seeds of words": (change("seeds = 2", "seeds = 'two'"), r"seeds: expected a number of seeds"),
    "unknown tuning set": (
        add("tuning = 'smal'\n"),
        r"\[systems.kbmira\] tuning: there is no table \[tuning.smal\]. Did you mean small\?",
    ),
    "missing configuration": (
        change('config = "moses.ini"', 'config = "mose.ini"'),
        r"\[features.dense\] config: .*mose.ini: No such file.* Did you mean moses.ini\?",
    ),
    "missing references": (
        change('refs = "reference"\nsentences', 'refs = "referenc"\nsentences'),
        r"\[tuning.small\] refs: references referenc not found",
    ),
    "no decoder": (
        change('decoder = "./decoder"', 'decoder = "./decodr"'),
        r"\[systems.kbmira\]: the decoder ./decodr is not an executable file",
    ),
    "too few sentences": (
        change("sentences = 6", "sentences = 13"),
        r"\[tuning.small\] sentences: .*input has only 12 sentences: give 12 or fewer",
    ),
    "a part of nothing": (
        change("sentences = 6", "part = '3/2'"),
        r"\[tuning.small\] part: expected K/N, as 1/2, with K at most N and N at most 12, not 3/2",
    ),
    "too few sentences of a part": (
        change("sentences = 6", "sentences = 7\npart = '1/2'"),
        r"\[tuning.small\] sentences: .*input has only 6 sentences in this part: give 6 or fewer",
    ),
    "unknown path": (
        change('decoder = "{decoder}"', 'decoder = "{decodr}"'),
        r"\[settings\] decoder: \{decodr\} is not a name in \[paths\]. Did you mean decoder\?",
    ),
    "unset variable": (
        change('decoder = "./decoder"', 'decoder = "$NO_SUCH_VARIABLE/decoder"'),
        r"\[paths\] decoder: the environment variable NO_SUCH_VARIABLE is not set: set it, or",
    ),
    "unknown metric": (f"metrics = ['BLUE']\n{HEAD}{KBMIRA}", r"metrics: .*BLUE"),
    "result of tune": (
        add("result = 'moses.ini'\n"),
        r"\[systems.kbmira\] result requires \[systems.kbmira\] command",
    ),
    "stored graphs": (add("decoder = 'forest:.'\n"), r"this decoder cannot translate the test"),
    "shared directory": (
        add("command = 'sh tune.sh {seed}'\n"),
        r"\[systems.kbmira\] command: all runs would write into one directory: pass the directory",
    ),
    "fixed working directory of Getopt": (
        add("command = 'tune.sh {seed} --log {directory}/log -working-dir work'\n"),
        r"\[systems.kbmira\] command: all runs would write into work: give -working-dir \{dir",
    ),
    "fixed working directory": (
        add("command = 'tune.sh {seed} --log {directory}/log --working-dir=work'\n"),
        r"\[systems.kbmira\] command: all runs would write into work: give --working-dir \{dir",
    ),
    "seeds that are one": (
        add("command = 'sh tune.sh {directory}'\n"),
        r"command: seeds 1 and 2 would be the same run: pass \{seed\} to the program, or give",
    ),
    "unknown place": (
        add("command = 'sh tune.sh {directory} {sed}'\n"),
        r"command: unknown \{sed\}. Did you mean \{?seed",
    ),
    "place without value": (
        add("command = 'sh tune.sh {directory} {decoder-flags}'\n"),
        r"command: \{decoder-flags\} has no value: give decoder-flags in \[settings\] or here",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_mistakes_are_found_before_anything_is_written(
    name: str, plan: Plan, toy_directory: Path
) -> None:
    text, message = BAD[name]
    with pytest.raises(UsageError, match=message) as raised:
        plan(text)
    assert str(raised.value).startswith("toy.toml: ")
    assert not (toy_directory / "results").exists()


def test_a_test_set_has_a_reference_for_each_sentence(plan: Plan, toy_directory: Path) -> None:
    (toy_directory / "short").write_text("ein hund\n")
    text = change('[tests.whole]\ninput = "input"\nrefs = "reference"', "[tests.whole]\n")
    text = text.replace("[tests.whole]\n", '[tests.whole]\ninput = "input"\nrefs = "short"\n')
    with pytest.raises(UsageError, match=r"toy.toml: \[tests.whole\]: .*short: 1 lines, but .*12"):
        plan(text)


def test_a_model_file_that_is_missing_is_named(plan: Plan, toy_directory: Path) -> None:
    ini = toy_directory / "moses.ini"
    ini.write_text(ini.read_text().replace("Toy name=LM0", "Toy name=LM0 path=lm.bin"))
    message = r"\[features.dense\] config: .*moses.ini:\d+: no model file begins with lm.bin"
    with pytest.raises(UsageError, match=message):
        plan(HEAD + KBMIRA)


def test_paths_come_from_file_call_and_environment(
    plan: Plan, toy_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY", str(toy_directory))
    text = change('decoder = "./decoder"', 'data = "${TOY}"\ndecoder = "{data}/none"')
    text = text.replace('input = "input"', 'input = "{data}/input"')
    made = plan(text, paths={"decoder": "./decoder"}, directory=Path("other"))
    assert made.experiment.tests["whole"].keys.input == toy_directory / "input"
    assert made.runs[0].values["decoder"] == "./decoder"
    assert made.runs[0].directory.is_relative_to(toy_directory / "other")
    with pytest.raises(UsageError, match=r"\[paths\]: there is no decodr to replace. Did you mean"):
        plan(text, paths={"decodr": "x"})


def test_settings_of_systems_replace_those_of_all(plan: Plan) -> None:
    text = HEAD.replace('config = "moses.ini"', 'config = "moses.ini"\nnbest = 10\nthreads = 1')
    made = plan(text + KBMIRA + "nbest = 5\n[systems.mert]\nalgorithm = 'mert'\n")
    assert [(run.row.system, run.values["nbest"]) for run in made.runs] == [
        *(("kbmira", 5), ("mert", 10)) * 2
    ]
    assert all(run.values["threads"] == 1 for run in made.runs)


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    with pytest.raises(UsageError, match=re.escape(f"the experiment {path}: No such file")):
        read_experiment(path)
