"""``mosesplug ask`` and ``tell``, as a script calls them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mosesplug.cli.main import main

COMMAND = Path(__file__).parents[2] / "data" / "toy" / "command.py"
WEIGHTS = "Distortion0= 0.3\nLM0= 0.5\nWordPenalty0= -1\nTranslationModel0= 0.2 0.2 0.2\n"
SETTINGS = ["--algorithm", "kbmira", "--nbest", "15", "--max-iterations", "2", "--seed", "5"]
BEGIN = ["ask", "asked", "reference", "start", *SETTINGS]


@pytest.fixture(autouse=True)
def _system(toy_files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("start").write_text(WEIGHTS)


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Run a command; return its exit code and what it prints on stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def decode(weights: str) -> None:
    """Decode the toy system's input into the file ``nbest``."""
    words = [sys.executable, "-IS", str(COMMAND), weights, "input", "nbest", "15"]
    subprocess.run(words, check=True, capture_output=True)


def test_loop_of_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"{sys.executable} -IS {COMMAND} {{weights}} {{input}} {{nbest}} {{nbest-size}}"
    words = ["tune", "input", "reference", "start", "--decode-command", command, *SETTINGS]
    assert run(words, capsys)[0] == 0
    for number in (1, 2):
        code, out, _ = run(BEGIN if number == 1 else ["ask", "asked"], capsys)
        assert (code, out.strip()) == (0, str(Path.cwd() / f"asked/run{number}.weights.dense"))
        assert run(["ask", "asked"], capsys)[1] == out
        decode(out.strip())
        code, out, err = run(["tell", "asked", "nbest", "--iteration", str(number)], capsys)
        assert (code, out) == (0, "")
        assert err.startswith(f"[{number}] BLEU")
    code, out, err = run(["ask", "asked"], capsys)
    assert (code, out) == (0, "")
    result = Path("asked/weights.dense").absolute()
    assert err.endswith(f"maximum of 2 iterations is reached\ntuned weights: {result}\n")
    assert result.read_bytes() == Path("tuning/weights.dense").read_bytes()
    assert run(["ask", "asked", "--quiet"], capsys) == (0, "", "")
    found = json.loads(run(["ask", "asked", "--json"], capsys)[1])
    assert found["finished"] == "the maximum of 2 iterations is reached"
    assert found["weights"] == str(result)
    code, out, _ = run(["ask", "asked", "--json", "--max-iterations", "3"], capsys)
    assert (code, json.loads(out)["iteration"], json.loads(out)["nbest_size"]) == (0, 3, 15)


def test_json_weights_and_replaced_run(capsys: pytest.CaptureFixture[str]) -> None:
    out = run([*BEGIN, "--weights-format", "json"], capsys)[1].strip()
    assert json.loads(Path(out).read_text())["dense"]["WordPenalty0"] == pytest.approx(-1 / 2.4)
    decode(out)
    assert run(["tell", "asked", "nbest"], capsys)[0] == 0
    code, out, _ = run([*BEGIN, "--overwrite", "--quiet"], capsys)
    assert (code, Path(out.strip()).name) == (0, "run1.weights.dense")


def test_errors(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(words: list[str], code: int, message: str) -> None:
        found = run(words, capsys)
        assert found[0] == code
        assert found[1] == ""
        assert message in found[2]

    fails(["ask", "asked"], 2, "holds no run yet: to begin one, give references")
    fails(["ask", "asked", "reference"], 2, "expected two arguments after DIR")
    fails(["tell", "asked", "start"], 2, "holds no run yet")
    assert not Path("asked").exists()
    fails([*BEGIN, "--algorithm", "mrt"], 2, "unknown algorithm 'mrt'")
    decode(run(BEGIN, capsys)[1].strip())
    fails(["tell", "asked", "nbest", "--iteration", "2"], 2, "is for iteration 1, not 2")
    Path("short").write_text("".join(Path("nbest").read_text().splitlines(keepends=True)[:-15]))
    fails(["tell", "asked", "short"], 1, "short: 1 of 8 sentences have no hypotheses: 7")
    fails(["tell", "asked", "missing"], 2, "missing: No such file")
    assert run(["tell", "asked", "nbest"], capsys)[0] == 0
    fails(["tell", "asked", "nbest"], 2, "no open request in asked: its lists were taken")
    Path("start").write_text(WEIGHTS.replace("0.5", "0.6"))
    fails(BEGIN, 1, "configuration")
    fails(["tune", "--settings", "asked/settings.toml"], 2, "mosesplug ask and mosesplug tell")
    assert run(["ask", "asked"], capsys)[0] == 1


@pytest.mark.parametrize("packed", [False, True])
def test_an_old_list(packed: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused in whatever file it is, and accepted if the iteration is named."""
    decode(run(BEGIN, capsys)[1].strip())
    assert run(["tell", "asked", "nbest"], capsys)[0] == 0
    assert run(["ask", "asked"], capsys)[0] == 0
    if packed:
        Path("nbest.gz").write_bytes(gzip.compress(Path("nbest").read_bytes()))
    old = "nbest.gz" if packed else "nbest"
    code, out, err = run(["tell", "asked", old], capsys)
    assert (code, out) == (2, "")
    assert f"{old} has the lists of iteration 1, which are stored already" in err
    assert "the open request is for iteration 2" in err
    if packed:  # one word differs
        lines = Path("nbest").read_text().splitlines(keepends=True)
        fields = lines[-1].split(" ||| ")
        lines[-1] = " ||| ".join([fields[0], f"{fields[1]} more", *fields[2:]])
        Path("nbest").write_text("".join(lines))
        assert run(["tell", "asked", "nbest"], capsys)[0] == 0
    else:
        assert run(["tell", "asked", "nbest", "--iteration", "2"], capsys)[0] == 0
