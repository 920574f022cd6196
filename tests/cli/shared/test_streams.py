"""Standard streams that are terminals, closed, full, or without a reader."""

from __future__ import annotations

import errno
import importlib
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mosesplug.cli.main import main
from mosesplug.cli.moses.install import TOOLKITS, find_toolkit
from mosesplug.cli.shared.exits import exit_code
from mosesplug.cli.shared.streams import control_stream, standard_streams

PROGRAMS = sorted(
    {entry for name in TOOLKITS for entry in find_toolkit(name).launchers.values()}
    | {("mosesplug.cli.main", "main"), ("mosesplug.extras.phrase_decoder.program", "main")}
)
START = "import sys; sys.argv[0] = 'program'; from {} import {} as main; main()"
MOSESPLUG = START.format("mosesplug.cli.main", "main")
CLOSED = "stdout: Bad file descriptor. A standard stream is closed: redirect it"


def run_with_streams(
    redirections: str, *words: str, program: str = MOSESPLUG
) -> tuple[int, str, str]:
    """Run a program from a shell that redirects its streams; return code, stdout and stderr."""
    command = ["sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, "-c", program, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("redirections", "words", "code", "message"),
    [
        (">&-", ["--version"], 1, CLOSED),
        (">&-", ["nonsense"], 2, "No such command"),
        ("2>&-", ["--version"], 0, ""),
        ("2>&-", ["nonsense"], 2, ""),
        ("2>/dev/full", ["nonsense"], 2, ""),
        (">&- 2>&- <&-", ["algorithms"], 1, ""),
    ],
)
def test_closed_streams(redirections: str, words: list[str], code: int, message: str) -> None:
    ended, _, error = run_with_streams(redirections, *words)
    assert ended == code
    assert message in error
    assert "Traceback" not in error


def test_stdin_that_is_closed(tmp_path: Path) -> None:
    refs = tmp_path / "refs"
    refs.write_text("a\n")
    program = START.format("mosesplug.cli.moses.sentence_bleu", "main")
    code, output, error = run_with_streams("<&-", str(refs), program=program)
    assert (code, output) == (1, "")
    assert "Bad file descriptor. A standard stream is closed" in error


def test_a_reader_that_ends_is_no_error_to_report() -> None:
    code, output, error = run_with_streams("| head -c 1", "algorithms", "--json")
    assert (code, output, error) == (0, "[", "")


class _Stream(io.StringIO):
    """A stream whose writes fail."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.buffer = self

    def write(self, text: object) -> int:
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize(("module", "function"), PROGRAMS)
def test_every_program_says_that_its_output_is_lost(
    module: str,
    function: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    program = getattr(importlib.import_module(module), function)
    monkeypatch.setattr(sys, "argv", ["program", "--help"])
    monkeypatch.setattr(sys, "stdout", _Stream(errno.ENOSPC))
    with pytest.raises(SystemExit) as end:
        program()
    assert end.value.code == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "stdout: No space left on device" in error


@pytest.fixture
def tune_words(toy_files: list[str], tmp_path: Path) -> list[str]:
    """A run of one iteration."""
    few = ["--nbest=5", "--max-iterations=1", "--threads=1"]
    return ["tune", *toy_files, *few, f"--working-dir={tmp_path}/w"]


def test_tune_without_stderr(
    tune_words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stderr", _Stream(errno.EBADF))
    with pytest.raises(SystemExit) as end:
        main(tune_words)
    assert not end.value.code
    assert capsys.readouterr().out.endswith(f"tuned configuration: {tmp_path}/w/moses.ini\n")


def test_tune_without_stdout(
    tune_words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The result of a run is in files; a document that was asked for is not."""
    for number in (errno.EBADF, errno.ENOSPC, errno.EPIPE):
        monkeypatch.setattr(sys, "stdout", _Stream(number))
        with pytest.raises(SystemExit) as end:
            main([*tune_words, "--overwrite"])
        assert not end.value.code
        assert "the table is not printed" in capsys.readouterr().err
        assert (tmp_path / "w" / "moses.ini").is_file()
        with pytest.raises(SystemExit) as end:
            main([*tune_words, "--continue", "--json", "--quiet"])
        assert end.value.code == 1
        assert "--continue" not in capsys.readouterr().err


def test_messages_that_cannot_be_written_do_not_stop_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = []

    def work() -> None:
        print("warning", file=sys.stderr)
        done.append(1)

    for number in (errno.EPIPE, errno.ENOSPC, errno.EBADF):
        monkeypatch.setattr(sys, "stderr", _Stream(number))
        assert exit_code("prog", work) == 0
    assert len(done) == 3


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 1), (errno.EPIPE, 1)])
def test_output_that_cannot_be_written(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", _Stream(number))
    assert exit_code("prog", lambda: print("result")) == code
    error = capsys.readouterr().err
    assert error == (
        ""
        if number == errno.EPIPE
        else "prog: stdout: No space left on device. Free some room on that disk.\n"
    )


def test_a_stream_that_is_kept_escapes_no_longer(capsys: pytest.CaptureFixture[str]) -> None:
    """As by colorama, which resets the colors at exit."""
    with standard_streams():
        kept = sys.stdout
        kept.write("\x1b[0m")
        with standard_streams():
            pass
        kept.write("\x1b[0m")
    kept.write("\x1b[0m")
    assert capsys.readouterr().out == r"\x1b[0m" * 2 + "\x1b[0m"


def test_text_is_escaped_and_bytes_are_not(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with standard_streams():
        print("a\x1b\tb")
        print("c\x9b", file=sys.stderr)
        sys.stdout.flush()
        sys.stdout.buffer.write(b"d\x1b\n")
        control_stream(sys.stderr).write("\x1b[K")
        with standard_streams():  # once
            print("\\ \x07")
    assert capsysbinary.readouterr() == (b"a\\x1b\tb\nd\x1b\n\\ \\x07\n", b"c\\x9b\n\x1b[K")


@pytest.mark.parametrize("more", [[], ["--online", "--algorithm=mira", "--shards=2"]])
def test_threads_that_do_not_start(
    more: list[str],
    toy_files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def start(*arguments: object, **keywords: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading, "_start_new_thread", start)
    words = [*toy_files, "--nbest=5", "--max-iterations=1", f"--working-dir={tmp_path}/w", *more]
    with pytest.raises(SystemExit) as end:
        main(["tune", *words])
    assert end.value.code == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("mosesplug: the system starts no more threads. Allow more processes")
