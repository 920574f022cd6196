"""Text files: compression by content, lines as bytes, atomic writes."""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.text import (
    atomic_write,
    iter_chunks,
    open_text,
    read_bytes,
    read_lines,
    require_regular_file,
    write_atomic,
)

TEXT = "ein mann\nzwei  männer \xa0\r\n\nlast".encode()
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("kind", PACKERS)
def test_compression_is_detected_by_content(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(PACKERS[kind](TEXT))
    assert read_bytes(path) == TEXT
    with open_text(path) as file:
        assert file.readline() == b"ein mann\n"
    assert b"".join(iter_chunks(path, 3)) == TEXT
    assert all(iter_chunks(path, 3))


def test_only_newline_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes("a\u2028b\x0bc\rd\r\n\n e ".encode() + b"\xff\n\nlast")
    assert read_lines(path) == ["a\u2028b\x0bc\rd\r".encode(), b"", b" e \xff", b"", b"last"]
    path.write_bytes(b"")
    assert read_lines(path) == []
    path.write_bytes(b"one\n")
    assert read_lines(path) == [b"one"]


def test_concatenated_gzip_members_are_one_text(tmp_path: Path) -> None:
    path = tmp_path / "two.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert read_lines(path) == [b"one", b"two"]


def test_zeros_behind_gzip_members_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "padded.gz"
    one, zeros = gzip.compress(TEXT), bytes(100_000)
    path.write_bytes(one + zeros + gzip.compress(b"") + gzip.compress(b"two") + zeros)
    assert read_bytes(path) == TEXT + b"two" == gzip.decompress(path.read_bytes())


def test_other_bytes_behind_a_gzip_member_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "more.gz"
    path.write_bytes(gzip.compress(TEXT) + b"more")
    with pytest.raises(FormatError, match="damaged"):
        read_bytes(path)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_truncated_archive_names_the_file_and_the_remedy(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"cut.{kind}"
    path.write_bytes(PACKERS[kind](bytes(range(256)) * 50)[:-12])
    with pytest.raises(FormatError, match=r"cut short or damaged.*produce it again") as caught:
        read_bytes(path)
    assert str(path) in str(caught.value)


def test_damaged_archive(tmp_path: Path) -> None:
    path = tmp_path / "bad.gz"
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1  # the checksum
    path.write_bytes(packed)
    with pytest.raises(FormatError, match="damaged"):
        read_bytes(path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("kind", PACKERS)
def test_utf_16_is_rejected(tmp_path: Path, kind: str, encoding: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(PACKERS[kind]("\ufeffzwei männer\n".encode(encoding)))
    with pytest.raises(FormatError) as raised:
        read_lines(path)
    assert str(raised.value) == (
        f"{path}: this is UTF-16 text. Convert it: iconv -f UTF-16 -t UTF-8"
    )


@pytest.mark.parametrize("kind", PACKERS)
def test_a_byte_order_mark_is_skipped(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(PACKERS[kind](b"\xef\xbb\xbf" + TEXT))
    assert read_bytes(path) == TEXT
    path.write_bytes(PACKERS[kind](b"\xef\xbb\xbf"))
    assert read_lines(path) == []


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="No such file"):
        read_bytes(tmp_path / "none")
    with pytest.raises(FormatError, match="directory"):
        read_bytes(tmp_path)


@given(data=st.binary().filter(lambda data: data[:2] not in (b"\xff\xfe", b"\xfe\xff")))
def test_write_and_read_round_trip(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    directory = tmp_path_factory.mktemp("text")
    write_atomic(directory / "a.gz", data, compress="gz")
    assert read_bytes(directory / "a.gz") == data.removeprefix(b"\xef\xbb\xbf")


def test_same_bytes_in_same_archive_out(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        write_atomic(tmp_path / name, TEXT, compress="gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == TEXT


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "weights.txt"
    write_atomic(path, b"old")

    def interrupted() -> None:
        with atomic_write(path) as file:
            file.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_failed_writes_name_the_file_and_not_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "missing" / "x.json"
    with pytest.raises(FileNotFoundError) as caught:
        write_atomic(path, TEXT)
    assert str(caught.value) == f"[Errno 2] No such file or directory: '{path}'"

    def fail(old: Path, new: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(old), None, str(new))

    monkeypatch.setattr(Path, "replace", fail)
    path = tmp_path / "x.json"
    with pytest.raises(PermissionError) as denied:
        write_atomic(path, TEXT)
    assert str(denied.value) == f"[Errno 1] Operation not permitted: '{path}'"
    assert not list(tmp_path.iterdir())


def test_text_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weights.txt"
    synced: list[tuple[bool, int]] = []
    monkeypatch.setattr(
        os, "fsync", lambda file: synced.append((path.exists(), os.fstat(file).st_ino))
    )
    write_atomic(path, TEXT)
    assert synced == [(False, path.stat().st_ino), (True, tmp_path.stat().st_ino)]


def test_writing_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link, file = tmp_path / "link", tmp_path / "real" / "moses.ini"
    link.symlink_to(Path("real") / "moses.ini")
    for text in (b"first", b"second"):
        write_atomic(link, text)
        assert link.is_symlink()
        assert file.read_bytes() == text
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("compress", [None, "gz"])
def test_devices_and_pipes_are_written_and_not_replaced(
    tmp_path: Path, compress: Literal["gz"] | None
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(read_bytes, pipe)
        write_atomic(pipe, TEXT, compress=compress)
        assert read.result() == TEXT
    assert list(tmp_path.iterdir()) == [pipe]
    assert pipe.is_fifo()
    with pytest.raises(IsADirectoryError):
        write_atomic(tmp_path, b"")


def test_permissions_are_kept_or_those_of_a_new_file(tmp_path: Path) -> None:
    new, plain, old = tmp_path / "new", tmp_path / "plain", tmp_path / "old"
    plain.touch()
    write_atomic(new, b"")
    assert new.stat().st_mode == plain.stat().st_mode
    old.touch()
    old.chmod(0o640)
    write_atomic(old, b"x")
    assert old.stat().st_mode & 0o777 == 0o640


def test_devices_are_rejected_and_pipes_accepted_if_named(tmp_path: Path) -> None:
    for name in ("/dev/zero", "/dev/urandom", "/dev/full"):
        with pytest.raises(FormatError, match=f"^{name}: this is a device. Give a file"):
            read_bytes(name)
    assert read_bytes("/dev/null") == b""
    reading, writing = os.pipe()
    os.write(writing, gzip.compress(TEXT))
    os.close(writing)
    assert read_bytes(f"/dev/fd/{reading}") == TEXT  # as <(zcat list.gz) is
    os.close(reading)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for path in (tmp_path / "pipe", tmp_path / "link", tmp_path, Path("/dev/zero")):
        with pytest.raises(FormatError, match="this is not a regular file"):
            require_regular_file(path)
    assert require_regular_file(tmp_path / "none") == tmp_path / "none"


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_archives_with_extreme_compression_are_rejected(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(PACKERS[kind](bytes(1 << 20)))
    assert len(read_bytes(path)) == 1 << 20
    monkeypatch.setattr("formats.text._UNPACKED_BYTES", 1 << 18)
    with pytest.raises(FormatError, match=r"bomb: .* bytes of the archive expand to .*"):
        list(iter_chunks(path))
    path.write_bytes(PACKERS[kind](np.random.default_rng(1).bytes(1 << 16) * 5))
    assert len(read_bytes(path)) == 5 << 16


def test_too_long_files_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(bytes(3 << 20))
    assert len(read_bytes(path, most=3 << 20)) == 3 << 20
    with pytest.raises(FormatError, match="more than 2 MiB, too much for a configuration"):
        read_bytes(path, most=2 << 20, what="a configuration")
