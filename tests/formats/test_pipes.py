"""Test copies of pipes, which can be read several times."""

from __future__ import annotations

import bz2
import gc
import gzip
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.nbest.list_format import ListOptions, SentenceIds
from formats.nbest.registry import detect_format, open_blocks
from formats.pipes import is_read_once, wrap_files
from formats.text import open_text, read_lines

TEXT = b"".join(b"line %d\n" % number for number in range(1000))


@contextmanager
def feed(path: Path, data: bytes) -> Iterator[Path]:
    """Make a pipe that yields data once."""
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    yield path
    writer.join()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_a_pipe_is_read_again_and_again(tmp_path: Path, pack: type[bytes]) -> None:
    with feed(tmp_path / "pipe", pack(TEXT)) as path:
        assert is_read_once(path)
        (copy,) = wrap_files([path])
        assert not is_read_once(copy)
        assert str(copy) == os.fspath(copy) == str(path)
        with open_text(copy) as one, open_text(copy) as other:
            # Each reader has a position of its own.
            assert [one.readline(), other.readline(), one.readline()] == [
                b"line 0\n", b"line 0\n", b"line 1\n",
            ]  # fmt: skip
        with ThreadPoolExecutor(4) as pool:
            assert all(found == TEXT.splitlines() for found in pool.map(read_lines, [copy] * 8))
        with copy.open() as file:
            assert (file.seek(-3, os.SEEK_END), file.seek(2), file.seek(1, os.SEEK_CUR)) == (
                len(pack(TEXT)) - 3, 2, 3,
            )  # fmt: skip
    del copy, file
    gc.collect()  # closes the copy without a warning


def test_paths_are_wrapped_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(TEXT)
    block = object()
    (file, missing, other) = wrap_files([tmp_path / "file", tmp_path / "missing", block])
    assert wrap_files([file, missing, other]) == (file, missing, block)
    assert read_lines(file) == TEXT.splitlines()
    with pytest.raises(FormatError, match=r"^/dev/zero: this is a device"):
        open_text(*wrap_files(["/dev/zero"]))
    with pytest.raises(FormatError, match="missing: cannot be read: No such file"):
        open_text(missing)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'{"id": "utt-a", "hyp": "a b", "lm": -1}\n', "jsonl"),
        (b"id\thyp\tlm\nutt-a\ta b\t-1\n", "tsv"),
        (b"utt-a ||| a b ||| lm= -1 ||| -1\n", "moses"),
        (b"0 ||| a b ||| lm=-1 ||| -1\n", "cdec"),
        (b"S-0\tx\nH-0\t-1\ta b\n", "fairseq"),
    ],
)
def test_formats_of_pipes_are_detected(tmp_path: Path, text: bytes, name: str) -> None:
    with feed(tmp_path / "pipe", text) as path:
        (copy,) = wrap_files([path])
        assert detect_format(copy).name == name
        ids = SentenceIds()
        [block] = open_blocks(copy, options=ListOptions(dense=()), ids=ids)
        assert block.text(0) == b"a b"
        assert ids.names == (("utt-a",) if b"utt-a" in text else ())
