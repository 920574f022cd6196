"""``mosesplug experiment`` as a user calls it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.cli.main import main
from tests.experiments.conftest import decoder_in_process, toy_directory  # noqa: F401
from tests.tuning.bundled import DEMO, write_bundled_decoder, write_demo_config

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "experiments" / "demo.toml"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    decoder_in_process: None,  # noqa: F811
) -> Run:
    """Calls the command beside the files of the manual's examples, of ten sentences each."""
    monkeypatch.chdir(tmp_path)
    for name, pair in {
        "dev": "tune.tarvian tune.english",
        "test": "test.tarvian test.english0",
    }.items():
        for side, source in zip(("src", "ref"), pair.split(), strict=True):
            lines = (DEMO / source).read_bytes().splitlines(keepends=True)
            (tmp_path / f"{name}.{side}").write_bytes(b"".join(lines[:10]))
    (tmp_path / "tarvian").write_bytes(
        (tmp_path / "dev.src").read_bytes() + (tmp_path / "test.src").read_bytes()
    )
    shutil.move(write_demo_config(tmp_path), tmp_path / "moses.ini")
    write_bundled_decoder(tmp_path / "moses")

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["experiment", str(EXAMPLE), *map(str, words)])
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return call


def test_the_example_of_the_manual(run: Run) -> None:
    code, out, _ = run("--dry-run")
    assert code == 0
    assert "4 runs without an estimate: nothing has run yet" in out
    assert not Path("demo").exists()
    code, out, err = run("--quiet")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split()[:4] == ["system", "seeds", "test", "BLEU"]
    scores = {line.split()[0]: float(line.split()[2]) for line in lines[1:4]}
    assert set(scores) == {"untuned", "kbmira", "mert"}
    assert scores["kbmira"] > scores["untuned"]
    assert lines[-1].startswith("page: ")
    # Nothing is left to do, and the table is the same.
    assert run("--quiet")[1] == out
    code, out, _ = run("--table", "--json")
    rows = json.loads(out)["rows"]
    assert [row["baseline"] for row in rows] == ["untuned/dense/8"] * 3
    assert rows[0]["mean"] == pytest.approx(scores["untuned"], abs=0.006)
    code, out, _ = run("--dry-run", "--json")
    assert {run["state"] for run in json.loads(out)} == {"finished"}


def test_errors(run: Run) -> None:
    code, _, err = run("--systems", "mirt")
    assert code == 2
    assert "there is no system mirt" in err
    assert "Did you mean mert?" in err
    code, _, err = run("--path", "data")
    assert (code, "--path data: not of the form NAME=VALUE" in err) == (2, True)
    code, _, err = run("--scheduler", "host")
    assert (code, "is not the address of a scheduler" in err) == (2, True)
