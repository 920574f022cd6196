"""A small third-party package with a plug-in of each kind, through the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mosesplug
from mosesplug import plugins
from mosesplug.cli.main import main
from mosesplug.errors import UsageError
from mosesplug.metrics import metric
from mosesplug.metrics.registry import metric_of_signature
from mosesplug.optimizers.registry import algorithm
from mosesplug.testing import check_algorithm, check_decoder, check_list_format, check_metric
from tests.plugins.installing import (
    PACKAGE,
    forget_package,
    install_package,
    write_data,
    write_metadata,
)

Output = pytest.CaptureFixture[str]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of installed packages, with nothing in it."""
    directory = tmp_path / "site"
    directory.mkdir()
    monkeypatch.syspath_prepend(directory)
    monkeypatch.setattr(plugins, "_warned", set())
    yield directory
    forget_package()


@pytest.fixture
def acme(site: Path) -> Path:
    """The package, installed."""
    return install_package(site)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lexicon, source sentences, references, and lists in the format of the package."""
    directory = tmp_path / "data"
    directory.mkdir()
    write_data(directory)
    monkeypatch.chdir(directory)
    return directory


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_a_metric(acme: Path, data: Path, capsys: Output) -> None:
    words = ("--refs", "ref", "--metric", "SACC", "--metric-settings", "case:false")
    assert run("optimize", "lists", "--format", "piped", *words, "-o", "tuned") == 0
    said = capsys.readouterr().err
    assert "score at the start  0.8" in said
    assert "score at the end    1.000000" in said
    assert "SACC|nrefs:1|case:false|version:acme-1.0" in said
    assert run("score", "ref", "ref", "--metric", "SACC", "--metric", "CER") == 0
    assert "SACC" in capsys.readouterr().out
    assert run("optimize", "lists", "--refs", "ref", "--metric", "SACC,WER", "-o", "both") == 0
    assert run("score", "ref", "ref", "--metric", "SACC case:maybe") == 2
    assert "case:maybe is invalid for SACC" in capsys.readouterr().err


def test_a_metric_in_the_store(acme: Path, data: Path, capsys: Output) -> None:
    """Its statistics are stored under its signature; without the package, they have no metric."""
    words = ("src", "ref", "plugin:lexicon:lexicon.txt", "start.weights", "--working-dir", "run")
    assert run("tune", *words, "--metric", "SACC", "--max-iterations", "2", "--nbest", "5") == 0
    capsys.readouterr()
    assert run("oracle", "run") == 0
    assert "SACC" in "".join(capsys.readouterr())
    for directory in acme.glob("*.dist-info"):
        shutil.rmtree(directory)
    assert run("oracle", "run") == 2
    said = capsys.readouterr().err
    assert "unknown metric 'SACC'" in said
    assert "install the package whose plug-in it is" in said
    assert run("oracle", "run", "--metric", "WER", "--refs", "ref") == 0


def test_a_list_format(acme: Path, data: Path, capsys: Output) -> None:
    for words in (("--format", "piped"), ()):
        assert run("optimize", "lists", *words, "--refs", "ref", "-o", "tuned") == 0
        assert "12 sentences" in capsys.readouterr().err
    Path("bad").write_text("utt0|a|len=1\nutt0|b|len=x\n")
    assert run("optimize", "bad", "--format", "piped", "--refs", "ref") == 1
    assert "bad:2: 'len=x' is not name=value. Correct the value" in capsys.readouterr().err


def test_a_decoder(acme: Path, data: Path, capsys: Output) -> None:
    words = (
        "src",
        "ref",
        "plugin:lexicon:lexicon.txt",
        "start.weights",
        "--nbest",
        "8",
        "--metric",
        "WER",
    )
    assert run("tune", *words, "--working-dir", "run", "--max-iterations", "3") == 0
    assert "tuned weights:" in capsys.readouterr().out
    tuned = Path("run/weights.dense").read_text()
    assert [line.split("=")[0] for line in tuned.splitlines()] == ["Lexicon", "Letters"]
    found = mosesplug.open_run("run")
    assert found.iterations
    assert Path("run/run1.out").read_text().count("\n") == 12
    # Another iteration continues the run, and its settings name the plug-in.
    more = ("--max-iterations", "4", "--continue")
    assert run("tune", *words, "--working-dir", "run", *more) == 0
    assert 'decoder = "plugin:lexicon:lexicon.txt"' in Path("run/settings.toml").read_text()
    online = ("--online", "--algorithm", "mira", "--max-iterations", "2")
    assert run("tune", *words, "--working-dir", "online", *online, "--heldout", "src", "ref") == 0
    assert (
        run("tune", "src", "ref", "plugin:lexicon:gone", "start.weights", "--working-dir", "x") == 2
    )
    assert "plugin:lexicon:gone: give a file" in capsys.readouterr().err
    assert run("tune", *words, "--working-dir", "x", "--jobs", "4") == 2
    assert "--jobs needs a decoder that is a program" in capsys.readouterr().err


def test_an_algorithm(acme: Path, data: Path, capsys: Output) -> None:
    words = ("lists", "--refs", "ref", "--algorithm", "random-search", "-o", "tuned")
    for setting in (("--option", "points=20"), ("--points", "20")):
        assert run("optimize", *words, *setting) == 0
        capsys.readouterr()
    assert run("optimize", *words, "--option", "points=1") == 2
    assert "option points of random-search must be at least 2" in capsys.readouterr().err
    assert run("optimize", *words, "--option", "pints=1") == 2
    assert "unknown option 'pints' of random-search. Did you mean points?" in (
        capsys.readouterr().err
    )
    assert run("algorithms", "random-search") == 0
    assert "points  int >= 2  [200]" in capsys.readouterr().out
    assert run("algorithms", "--all") == 0
    assert "random-search" in capsys.readouterr().out
    assert "random-search" in mosesplug.algorithms()


def test_plugins_are_listed(acme: Path, capsys: Output) -> None:
    assert run("plugins") == 0
    printed = capsys.readouterr().out
    for name in ("SACC", "piped", "lexicon", "random-search"):
        assert name in printed
    assert run("plugins", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["kind"] for each in found] == ["metric", "format", "decoder", "algorithm"]
    assert {each["package"] for each in found} == {"acme-tuning 1.0"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--metric", "SACK"), "PER, SACC, TER"),
        (("--format", "pipe"), "moses, "),
        (("--format", "pipe"), ", piped"),
        (("--algorithm", "random"), "random-search, rank-all"),
    ],
)
def test_errors_list_the_names_of_plugins(
    words: tuple[str, ...], message: str, acme: Path, data: Path, capsys: Output
) -> None:
    assert run("optimize", "lists", "--refs", "ref", *words) == 2
    assert message in capsys.readouterr().err


def test_the_package_passes_the_checks(acme: Path, data: Path) -> None:
    from acme_tuning.decoder import LEXICON  # type: ignore[import-not-found]
    from acme_tuning.lists import PIPED  # type: ignore[import-not-found]

    check_metric(metric("SACC"))
    check_algorithm(algorithm("random-search"))
    Path("bad").write_text("utt0|a\n")
    check_list_format(PIPED, ["lists"], ["bad"])
    sentences = Path("src").read_bytes().splitlines()
    distinct = list(dict.fromkeys(sentences))
    check_decoder(LEXICON, "lexicon.txt", distinct, {"Lexicon": 1.0, "Letters": 0.5})


def test_the_metric_of_a_signature(acme: Path) -> None:
    made = metric("SACC", "case:false")
    assert metric_of_signature(made.signature()) == made
    assert metric_of_signature(made.prepare([[b"a"]]).signature) == made
    both = metric("SACC,CER", "weights:0.3+0.7,case:false,blanks:remove")
    assert metric_of_signature(both.signature()) == both


def test_an_error_rate(acme: Path, data: Path, capsys: Output) -> None:
    """People read the rate; while tuning, larger is better."""
    (acme / "acme_errors.py").write_text(
        "from dataclasses import dataclass\n"
        "from mosesplug.metrics.plugin import MetricPlugin\n"
        "from acme_tuning.metric import SentenceAccuracy\n"
        "@dataclass(frozen=True)\nclass SentenceErrors(SentenceAccuracy):\n    name = 'SER'\n"
        "SER = MetricPlugin('SER', 'Wrong sentences', lambda settings: SentenceErrors(),"
        " is_error_rate=True)\n"
    )
    write_metadata(acme, "acme-errors", "2.0", {"mosesplug.metrics": {"SER": "acme_errors:SER"}})
    Path("wrong").write_text("x\n" * 12)
    assert run("score", "wrong", "ref", "--metric", "SER") == 0
    assert "SER     1.0000" in capsys.readouterr().out
    assert run("optimize", "lists", "--refs", "ref", "--metric", "SER", "-o", "tuned") == 0
    said = capsys.readouterr().err
    assert "SER at the end      0.000000\n" in said
    assert "score at the end    1.000000\nthe score is 1 - SER: larger is better\n" in said
    assert "(an error rate: less is better)" in said


BROKEN = {
    "mosesplug.metrics": {"BLEU": "acme_tuning.metric:SACC", "GONE": "nowhere:X"},
    "mosesplug.formats": {"number": "math:pi"},
    "mosesplug.decoders": {"crash": "acme_crash:X"},
    "mosesplug.algorithms": {
        "mert": "acme_tuning.algorithm:RANDOM_SEARCH",
        "renamed": "acme_tuning.algorithm:RANDOM_SEARCH",
        "random-search": "acme_tuning.algorithm:OTHER",
        "undeclared": "acme_crash_not:UNDECLARED",
    },
}


@pytest.fixture
def broken(acme: Path) -> Path:
    """A second package whose plug-ins cannot be used."""
    (acme / "acme_crash.py").write_text("raise RuntimeError('no\\nlicense')\n")
    (acme / "acme_crash_not.py").write_text(
        "from dataclasses import dataclass, replace\n"
        "from acme_tuning.algorithm import RANDOM_SEARCH\n"
        "@dataclass(frozen=True)\nclass Options:\n    size: int = 1\n"
        "UNDECLARED = replace(RANDOM_SEARCH, name='undeclared', options=Options)\n"
    )
    write_metadata(acme, "broken-tuning", "0.1", BROKEN)
    return acme


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("score", "ref", "ref", "--metric", "GONE"),
            "the plug-in GONE of broken-tuning 0.1 (entry point mosesplug.metrics: nowhere:X)"
            " cannot be imported: ModuleNotFoundError: No module named 'nowhere'. Repair or",
        ),
        (
            ("optimize", "lists", "--refs", "ref", "--format", "number"),
            "number of broken-tuning 0.1 (entry point mosesplug.formats: math:pi) is a float, but"
            " must be a ListFormat",
        ),
        (
            ("tune", "src", "ref", "plugin:crash", "start.weights", "--working-dir", "x"),
            "crash of broken-tuning 0.1 (entry point mosesplug.decoders: acme_crash:X) cannot be"
            " imported: RuntimeError: no license",
        ),
        (
            ("tune", "src", "ref", "plugin:lexicom", "start.weights", "--working-dir", "x"),
            "unknown decoder plug-in 'lexicom'; known: crash, lexicon",
        ),
        (
            ("optimize", "lists", "--refs", "ref", "--algorithm", "renamed"),
            "calls itself 'random-search': both names must be the same",
        ),
        (
            ("optimize", "lists", "--refs", "ref", "--algorithm", "undeclared"),
            "must declare its settings as a dataclass whose fields are"
            " Annotated[TYPE, mosesplug.options.Opt(...)], but size is not",
        ),
        (
            ("optimize", "lists", "--refs", "ref", "--algorithm", "random-search"),
            "two plug-ins have the same name: random-search of broken-tuning 0.1",
        ),
    ],
)
def test_broken_plugins_are_one_clear_error(
    words: tuple[str, ...], message: str, broken: Path, data: Path, capsys: Output
) -> None:
    assert run(*words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_broken_plugins_do_not_break_other_commands(
    broken: Path, data: Path, capsys: Output, caplog: pytest.LogCaptureFixture
) -> None:
    assert run("score", "ref", "ref", "--metric", "BLEU") == 0
    assert "BLEU|nrefs:1|case:mixed|" in capsys.readouterr().out
    assert run("optimize", "lists", "--refs", "ref", "--metric", "SACC", "-o", "tuned") == 0
    assert "warning" not in capsys.readouterr().err
    assert not caplog.records
    assert run("algorithms") == 0
    assert "mert " in capsys.readouterr().out
    assert any("mosesplug has mert itself" in record.message for record in caplog.records)
    assert run("plugins") == 0
    printed = capsys.readouterr().out
    assert printed.count("cannot be used") == 9
    messages = [record.message for record in caplog.records]
    assert len(messages) == len(set(messages)) == 8  # one for both of the same name


@pytest.mark.parametrize(
    ("signature", "name"),
    [("SACC|version:", "SACC"), ("OTHER|version:1", "SACC"), ("SACC|version:1", "OTHER")],
)
def test_metrics_whose_statistics_would_mix_are_rejected(
    signature: str, name: str, acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from acme_tuning.metric import SentenceAccuracy

    monkeypatch.setattr(SentenceAccuracy, "signature", lambda self: signature)
    monkeypatch.setattr(SentenceAccuracy, "name", name)
    with pytest.raises(UsageError, match="the plug-in metric SACC has the name"):
        metric("SACC")


@pytest.mark.parametrize("words", [("--help",), ("optimize", "--help")])
def test_help_looks_no_plugins_up(words: tuple[str, ...], broken: Path) -> None:
    """Looking entry points up would delay every command."""
    script = (
        "import sys\n"
        "from mosesplug.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit:\n    assert 'formats.plugins' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        env=os.environ | {"PYTHONPATH": f"{broken}:{Path(__file__).parents[2]}"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"Usage" in done.stdout


def test_the_manual_shows_the_package() -> None:
    """The page has the modules of the package word for word."""
    page = (PACKAGE.parents[1] / "howto" / "plugins.md").read_text()
    for path in ("pyproject.toml", *(f"acme_tuning/{n}.py" for n in NAMES)):
        assert (PACKAGE / path).read_text().rstrip() in page, path


NAMES = ("metric", "lists", "decoder", "algorithm")
