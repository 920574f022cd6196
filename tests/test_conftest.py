"""The suite itself: a test that hangs and a worker that dies end in a red summary."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import LIMIT

ROOT = Path(__file__).parents[1]

PASSES = """
def test_1(): pass
def test_2(): pass
def test_3(): pass
"""

HANGS = """
import threading
def wait_in_thread(end): end.wait()
def test_1(): pass
def test_2():
    end = threading.Event()
    threading.Thread(target=wait_in_thread, args=(end,), daemon=True).start()
    end.wait()
def test_3(): pass
"""

EXITS = """
import os
def test_1(): pass
def test_2(): os._exit(1)
def test_3(): pass
"""

HANGS_DEAF = """
import signal
def test_1(): pass
def test_2():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    while True: signal.sigtimedwait([signal.SIGUSR1], 600)
def test_3(): pass
"""


def run_suite(directory: Path, last_file: str, faulthandler_timeout: float) -> tuple[int, str]:
    """Run four files of passing tests and a last one, with the project's options, in two workers.

    The last file starts when each worker has finished others, which is when a worker that dies is
    the hardest on pytest-xdist.
    """
    for name in "abcd":
        (directory / f"test_{name}.py").write_text(PASSES)
    (directory / "test_e.py").write_text(last_file)
    project = ["-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest", "--dist", "loadfile"]
    here = ["--rootdir", str(directory), "-o", f"faulthandler_timeout={faulthandler_timeout}"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", *project, *here, str(directory)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if "PYTEST" not in name},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return ended.returncode, ended.stdout


def test_a_hanging_test_fails_with_all_stacks_and_the_run_continues(tmp_path: Path) -> None:
    code, output = run_suite(tmp_path, HANGS, 9)
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert "still running after 3 s" in output
    assert "in wait_in_thread" in output
    assert "1 failed, 14 passed" in output.splitlines()[-1]


@pytest.mark.parametrize(
    ("last_file", "faulthandler_timeout"),
    [(EXITS, 1800), (HANGS_DEAF, 3)],
    ids=["exits", "hangs and takes no signal"],
)
def test_a_worker_that_dies_ends_the_run_with_a_red_summary(
    tmp_path: Path, last_file: str, faulthandler_timeout: float
) -> None:
    code, output = run_suite(tmp_path, last_file, faulthandler_timeout)
    assert code == pytest.ExitCode.TESTS_FAILED, output
    assert "crashed while running 'test_e.py::test_2'" in output
    assert " failed" in output.splitlines()[-1]
