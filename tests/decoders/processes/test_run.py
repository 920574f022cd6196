"""Child processes: output to files, progress, failures told whole, and no orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mosesplug.decoders.processes import run
from mosesplug.decoders.processes.run import (
    LineCounter,
    describe_exit,
    find_executable,
    read_tail,
    run_command,
)
from mosesplug.errors import DecoderError
from tests.waiting import LIMIT, alive, gone, hurry, wait_until


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *arguments]


def test_output_goes_to_files_and_lines_are_counted(tmp_path: Path) -> None:
    seen: list[int] = []
    code = "import sys; print('a\\nb'); print('c', file=sys.stderr); print(sys.stdin.read())"
    (tmp_path / "in").write_text("text")
    finished = run_command(
        python(code),
        directory=tmp_path,
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        stdin=tmp_path / "in",
        on_lines=seen.append,
    )
    assert (tmp_path / "out").read_text() == "a\nb\ntext\n"
    assert (tmp_path / "err").read_text() == "c\n"
    assert seen[-1] == 3
    assert finished.command == tuple(python(code))


def test_directory_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOM", "here")
    code = "import os; print(os.getcwd(), os.environ['ROOM'])"
    out = tmp_path / "out"
    run_command(
        python(code),
        directory=tmp_path,
        stdout=out,
        stderr=tmp_path / "err",
    )
    assert out.read_text() == f"{tmp_path} here\n"


def test_a_failure_shows_command_code_and_last_messages(tmp_path: Path) -> None:
    code = "import sys; print('\\n'.join(map(str, range(50))), file=sys.stderr); sys.exit(7)"
    with pytest.raises(DecoderError) as caught:
        run_command(python(code), directory=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e")
    text = str(caught.value)
    assert "exit code 7" in text
    assert "import sys" in text
    assert "\n49\n" in text
    assert "\n39\n" not in text


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGTERM", "SIGINT"])
def test_killed_child_is_named_by_its_signal(tmp_path: Path, name: str) -> None:
    reset = f"signal.{name} != signal.SIGKILL and signal.signal(signal.{name}, signal.SIG_DFL)"
    code = f"import os, signal; {reset}; os.kill(os.getpid(), signal.{name})"
    with pytest.raises(DecoderError, match=f"killed by {name}"):
        run_command(python(code), directory=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e")


@pytest.mark.parametrize(("code", "name"), [(139, "SIGSEGV"), (134, "SIGABRT")])
def test_exit_codes_of_scripts_that_mean_signals_are_explained(
    tmp_path: Path, code: int, name: str
) -> None:
    with pytest.raises(DecoderError, match=rf"exit code {code} \(killed by {name}\)"):
        run_command(
            ["sh", "-c", f"exit {code}"],
            directory=tmp_path,
            stdout=tmp_path / "o",
            stderr=tmp_path / "e",
        )
    assert describe_exit(255) == "ended with exit code 255"


def test_one_that_is_silent_for_too_long_is_killed_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "echo loading >&2; sleep 777 & echo $! >pid.new; mv pid.new pid; sleep 778"
    hurry(monkeypatch, run, (tmp_path / "pid").exists)
    with pytest.raises(DecoderError) as caught:
        run_command(
            ["sh", "-c", script],
            directory=tmp_path,
            stdout=tmp_path / "o",
            stderr=tmp_path / "e",
            timeout=60,
        )
    text = str(caught.value)
    assert "wrote nothing for 60 s and was killed" in text
    assert "sleep 778" in text
    assert "\nloading\n" in text
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("place", ["list", "graphs"])
def test_output_to_other_files_counts_as_activity(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that is a second later at each look, so that no machine is too slow for it."""
    seconds = iter(range(1000))
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)))
    monkeypatch.setattr(run, "time", clock)
    (tmp_path / "graphs").mkdir()
    path = tmp_path / "list"
    patience = run._Patience(10, [tmp_path / "missing", tmp_path / place])
    for turn in range(6):
        if place == "list":
            path.write_text("x" * turn)
        else:
            (tmp_path / "graphs" / str(turn)).touch()
            os.utime(tmp_path / "graphs", ns=(turn, turn))  # clocks of file systems are coarse
        assert not patience.is_over()
        assert not patience.is_over()
    assert [patience.is_over() for _ in range(15)].count(True) > 3


def test_pipelines_end_in_silence(tmp_path: Path) -> None:
    """The first command of a pipeline is ended by SIGPIPE, as in a shell."""
    command = ["sh", "-c", "yes | head -n 1"]
    done = run_command(command, directory=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e")
    assert done.stdout.read_bytes() == b"y\n"
    assert done.stderr.read_bytes() == b""


def test_program_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(DecoderError, match="No such file"):
        run_command(
            [str(tmp_path / "none")],
            directory=tmp_path,
            stdout=tmp_path / "o",
            stderr=tmp_path / "e",
        )


def test_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    assert find_executable("./program") is None
    program.chmod(0o755)
    assert find_executable("./program") == program
    assert find_executable("program") == program
    assert find_executable(str(program)) == program
    assert find_executable("sh") is not None
    assert find_executable("no/such/program") is None


def test_tail_and_counter_of_missing_files(tmp_path: Path) -> None:
    assert read_tail(tmp_path / "none") == ""
    assert LineCounter(tmp_path / "none").count() == 0


def test_counter_reads_on(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    counter = LineCounter(path)
    path.write_text("a\nb")
    assert counter.count() == 1
    with path.open("a") as file:
        file.write("\nc\n")
    assert counter.count() == 3


GRANDPARENT = """
import signal, sys
from pathlib import Path
from mosesplug.decoders.processes.run import run_command
def stop(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
here = Path(sys.argv[1])
child = "import subprocess, sys, os, time\\n" \\
    "helper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\\n" \\
    "open('pids.new', 'w').write(f'{os.getpid()} {helper.pid}')\\n" \\
    "os.rename('pids.new', 'pids')\\ntime.sleep(600)"
run_command([sys.executable, "-c", child], directory=here, stdout=here / "out", stderr=here / "err")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_failed_child_leaves_no_processes(tmp_path: Path) -> None:
    command = ["sh", "-c", "sleep 600 & echo $! > helper; exit 3"]
    with pytest.raises(DecoderError, match="exit code 3"):
        run_command(command, directory=tmp_path, stdout=tmp_path / "o", stderr=tmp_path / "e")
    helper = int((tmp_path / "helper").read_text())
    try:
        assert gone(helper)
    finally:
        if alive(helper):
            os.kill(helper, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name
)
def test_no_orphans(tmp_path: Path, number: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", GRANDPARENT, str(tmp_path)], stderr=subprocess.DEVNULL
    )
    pids = tmp_path / "pids"
    wait_until(pids.exists)
    child, helper = map(int, pids.read_text().split())
    try:
        parent.send_signal(number)
        parent.wait(LIMIT)
        assert gone(child)
        assert gone(helper)
    finally:
        if alive(helper):
            os.kill(helper, signal.SIGKILL)
