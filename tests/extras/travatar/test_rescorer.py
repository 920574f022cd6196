"""``rescorer``: the best hypotheses, the sorted list, and its messages."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mosesplug.cli.moses.install import write_launchers
from mosesplug.extras.travatar.rescorer import main as rescorer

NBEST = """\
3 ||| a b ||| 0.5 ||| lm=-1 tm=2
3 ||| c ||| 1.5 ||| lm=-2 tm=2.5
3 |||  ||| 1.5 ||| tm=2.5
7 ||| d ||| -2 ||| lm=0.123456789
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nbest").write_text(NBEST)
    Path("weights").write_text("lm=1 tm=0.5\n")


def call(words: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        rescorer(words.split())
    printed = capfd.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def test_lists_are_sorted(capfd: pytest.CaptureFixture[str]) -> None:
    found = call("-nbest nbest -weight_in weights -nbest_out out", capfd)
    assert found == (0, "\nd\n", "")
    assert Path("out").read_text() == (
        "0 |||  ||| 1.25 ||| tm=2.5\n"
        "0 ||| a b ||| 0 ||| lm=-1 tm=2\n"
        "0 ||| c ||| -0.75 ||| lm=-2 tm=2.5\n"
        "1 ||| d ||| 0.123456791 ||| lm=0.12345679\n"
    )


def test_scores_of_the_list_from_stdin(tmp_path: Path) -> None:
    write_launchers(tmp_path / "travatar", peer="travatar")
    program = tmp_path / "travatar" / "src" / "bin" / "rescorer"
    done = subprocess.run([program], input=NBEST, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "c\nd\n", "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("-nbest nbest -mbr_eval bleu", 2, "-mbr_eval: use mosesplug mbr"),
        ("nbest", 2, "'nbest' belongs to no option"),
        ("-nbest nowhere", 1, "nowhere: "),
        ("-nbest nbest -weight_in nbest", 1, "nbest:1: "),
        ("-nbest weights", 1, "weights:1: "),
    ],
)
def test_errors(words: str, code: int, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    found, out, err = call(words, capfd)
    assert (found, out) == (code, "")
    assert err.startswith(f"rescorer: {message}")
    assert err.count("\n") == 1
