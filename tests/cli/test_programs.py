"""The installed programs from the outside."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mosesplug.cli.main import main as mosesplug
from mosesplug.cli.run.mert_moses import main as mert_moses
from tests.waiting import LIMIT, wait_until

PROGRAM = "from mosesplug.cli.main import main; main()"


def code_of(error: pytest.ExceptionInfo[SystemExit]) -> int:
    assert isinstance(error.value.code, int)
    return error.value.code


def test_tune(toy_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        *("tune", *toy_files, "--working-dir", str(tmp_path / "w"), "--nbest", "10"),
        *("--max-iterations", "2", "--seed", "1", "--option", "epochs=5", "--threads", "1"),
    ]
    with pytest.raises(SystemExit) as ended:
        mosesplug(words)
    assert code_of(ended) == 0
    said = capsys.readouterr()
    assert "[1] BLEU 0." in said.err
    assert f"tuned configuration: {tmp_path}/w/moses.ini" in said.out
    summary = json.loads((tmp_path / "w" / "summary.json").read_text())
    assert summary["seed"] == 1
    assert summary["result"]["selected"] == "average"
    with pytest.raises(SystemExit) as ended:
        mosesplug(words)
    assert code_of(ended) == 2
    assert "--continue" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        mosesplug([*words, "--continue", "--overwrite"])
    assert code_of(ended) == 2


def test_tune_with_search_graphs(
    toy_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tune", *toy_files, "--working-dir", str(tmp_path / "w"), "--nbest", "10", "--seed=1"]
    words += ["--max-iterations=1", "--algorithm=kbmira", "--epochs=2", "--threads=1"]
    with pytest.raises(SystemExit) as ended:
        mosesplug([*words, "--forest", "--forest-edges=5", "--last"])
    assert code_of(ended) == 0
    said = capsys.readouterr()
    assert "in the graphs" in said.err
    assert "in the search graphs (" in said.out
    summary = json.loads((tmp_path / "w" / "summary.json").read_text())
    assert summary["learned_from"] == "search graphs"
    for more, why in (
        (["--forest-edges=5"], "--forest-edges requires --forest"),
        (["--forest", "--lattice-samples=5"], "--forest excludes --lattice-"),
    ):
        with pytest.raises(SystemExit) as ended:
            mosesplug([*words, *more, "--overwrite"])
        assert code_of(ended) == 2
        assert why in capsys.readouterr().err


def test_mert_moses(
    toy_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*toy_files, f"-working=w{tmp_path.name}", "--nb=10", "--max=1", "--random-re", "1"]
    words[4] = f"-working={tmp_path}/w"
    with pytest.raises(SystemExit) as ended:
        mert_moses(words)
    assert code_of(ended) == 0
    assert (tmp_path / "w" / "run1.best10.out.gz").is_file()
    assert "unfiltered" in capsys.readouterr().err
    # As the script does, a second run replaces the first; but not in silence.
    with pytest.raises(SystemExit) as ended:
        mosesplug(["mert-moses", *words])
    assert code_of(ended) == 0
    assert "replacing the earlier run" in capsys.readouterr().err


def test_quiet_prints_nothing(
    toy_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        mert_moses([*toy_files, f"--working-dir={tmp_path}/w", "--max=1", "--nbest=5", "--quiet"])
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "code", "stream", "text"),
    [
        (["--help"], 0, "out", "--activate-features=STRING"),
        (["--frobnicate"], 2, "err", "Unknown option: frobnicate"),
        (["--promix-table=t", "a", "b", "c", "d"], 2, "err", "--promix-table is refused"),
        ([], 2, "err", "are needed"),
        (["a", "b", "c", "d"], 2, "err", "is not an executable file"),
    ],
)
def test_mert_moses_calls(
    words: list[str], code: int, stream: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        mert_moses(words)
    assert code_of(ended) == code
    said = getattr(capsys.readouterr(), stream)
    assert text in said
    if code:
        assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "stream", "text"),
    [
        (["--help"], 0, "out", "mert-moses"),
        (["--version"], 0, "out", "mosesplug 0"),
        (["tune", "--help"], 0, "out", "--working-dir"),
        (["nonsense"], 2, "err", "nonsense"),
        (["tune", "a", "b", "c", "d"], 2, "err", "the input a: No such file"),
        (["mert-moses", "--help"], 0, "out", "--[no-]filter-phrase-table"),
    ],
)
def test_mosesplug_calls(
    words: list[str], code: int, stream: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        mosesplug(words)
    assert code_of(ended) == code
    assert text in getattr(capsys.readouterr(), stream)


def test_help_loads_nothing_heavy() -> None:
    check = (
        "import sys\nfrom mosesplug.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('numpy', 'numba', 'lmdb', 'rich') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_while_decoding(
    toy_files: list[str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    work = tmp_path / "w"
    words = [*toy_files, f"--working-dir={work}", "--decoder-flags=-fault hang"]
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "mert-moses", *words], stderr=subprocess.PIPE, text=True
    )
    out = work / "run1.out"
    wait_until(lambda: child.poll() is not None or (out.exists() and out.stat().st_size))
    child.send_signal(number)
    _, said = child.communicate(timeout=LIMIT)
    assert child.returncode == code
    assert "--continue" in said
    assert "Traceback" not in said
    if sys.platform == "linux":
        wait_until(lambda: not [p for p in _command_lines() if str(tmp_path) in p])


def _command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return found
