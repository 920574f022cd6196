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

HANGS_DEAF = """
import signal
def test_1(): pass
def test_2():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    while True: signal.sigtimedwait([signal.SIGUSR1], 600)
def test_3(): pass
"""


def test_a_hanging_test_fails_and_a_dead_worker_ends_the_run(tmp_path: Path) -> None:
    """Three files of passing tests, one that hangs, and one whose worker dies, in two workers.

    The last file starts when each worker has finished others, which is when a worker that dies is
    the hardest on pytest-xdist.
    """
    for name, text in zip("abcde", [PASSES, PASSES, PASSES, HANGS, HANGS_DEAF], strict=True):
        (tmp_path / f"test_{name}.py").write_text(text)
    project = ["-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest", "--dist", "loadfile"]
    here = ["--rootdir", str(tmp_path), "-o", "faulthandler_timeout=3"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", *project, *here, str(tmp_path)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if "PYTEST" not in name},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED, ended.stdout
    assert "still running after 1 s" in ended.stdout
    assert "in wait_in_thread" in ended.stdout
    assert "crashed while running 'test_e.py::test_2'" in ended.stdout
    assert "2 failed, 12 passed" in ended.stdout.splitlines()[-1]
