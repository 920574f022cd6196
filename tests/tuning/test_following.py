"""Lists that are compressed and parsed while they are written."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.nbest.block import NBestList
from formats.nbest.files import read_nbest
from mosesplug.decoders.lists import following
from mosesplug.decoders.lists.files import pack, read_decoded
from mosesplug.decoders.lists.following import ListFollower, follow_list
from mosesplug.store import NBestStore
from mosesplug.tuning import tune

Toy = Any

GROUPS = (("LM0", 1), ("TM0", 2))


def text(sentences: int = 30) -> bytes:
    """A list of Moses with a sparse feature."""
    return b"".join(
        b"%d ||| a b%d ||| LM0= %d.5 TM0= 1 -%d s_x= 1 ||| -1\n" % (sentence, row, row, sentence)
        for sentence in range(sentences)
        for row in range(4)
    )


def rows(blocks: list[NBestList]) -> list[tuple[Any, ...]]:
    """What the blocks hold, by hypothesis."""
    return [
        (int(block.sentence_ids[i]), block.text(i), block.dense[i].tolist(), int(block.lines[i]))
        for block in blocks
        for i in range(len(block))
    ]


def follow(
    directory: Path, pieces: list[bytes], last: bytes | None = None, parsed: Any = None
) -> Any:
    """Write a list in pieces and follow it; return the follower and whether it succeeded."""
    path, packed = directory / "list", directory / "list.gz"
    with follow_list(path, packed, GROUPS, parsed) as follower:
        follower.advance()
        with path.open("wb") as file:
            for piece in pieces:
                file.write(piece)
                file.flush()
                follower.advance()
        if last is not None:
            path.write_bytes(last)
        return follower, follower.finish()


def only(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("size", [1, 2, 37, 1000, 1 << 20])
def test_the_archive_and_the_lists_are_those_of_the_whole(tmp_path: Path, size: int) -> None:
    content = text(5 if size < 10 else 30)
    pieces = [content[i : i + size] for i in range(0, len(content), size)]
    follower, finished = follow(tmp_path, pieces)
    assert finished
    (tmp_path / "plain").write_bytes(content)
    archive = pack(tmp_path / "plain")
    assert (tmp_path / "list.gz").read_bytes() == archive.read_bytes()
    blocks = list(follower.take_lists())
    assert rows(blocks) == rows([read_nbest(archive)])
    assert follower.take_lists() is None


@pytest.mark.parametrize("size", [1, 2, 37, 1000])
@pytest.mark.parametrize("most", [100, 1 << 26])
def test_lists_are_shown_when_the_next_sentence_begins(
    tmp_path: Path, size: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_MOST_PARSED", most)
    content = text(12)
    pieces = [content[i : i + size] for i in range(0, len(content), size)]
    shown: list[NBestList] = []
    follower, finished = follow(tmp_path, pieces, parsed=shown.extend)
    assert finished
    whole = rows([read_nbest(tmp_path / "list.gz")])
    assert rows(shown) == whole[: len(rows(shown))]
    assert len(rows(shown)) == 4 * 11
    lists = follower.take_lists()
    assert (lists is None) == (most == 100)
    assert lists is None or rows(list(lists)) == whole


@pytest.mark.parametrize("begin", [b"", b"\n", b" \n\n"])
@pytest.mark.parametrize("cut", [4, 12, 40])
def test_the_format_is_that_of_the_first_whole_line(begin: bytes, cut: int, tmp_path: Path) -> None:
    """Such a list names every value; a part of its first line does not tell."""
    content = begin + b"0 ||| a b ||| Lm_a=-1.5 Tm=2.5 ||| -1\n0 ||| a ||| Lm_a=-1 Tm=2 ||| -2\n"
    groups = (("Lm_a", 1), ("Tm", 1))
    path = tmp_path / "list"
    with follow_list(path, tmp_path / "list.gz", groups) as follower:
        for end in (len(begin) + cut, None):
            path.write_bytes(content[:end])
            follower.advance()
        assert follower.finish()
    (block,) = follower.take_lists() or ()
    (wanted,) = read_decoded(path, groups)
    assert block.groups == wanted.groups == groups
    assert rows([block]) == rows([wanted])


@pytest.mark.parametrize(
    ("pieces", "last"),
    [
        ([text()], text(29)),  # written again
        ([text(3)], text(3)[:-9] + b"||| -2.5\n"),
        ([gzip.compress(text())], None),
        ([b"\xef\xbb\xbf" + text()], None),
        ([], b""),
    ],
    ids=["shorter", "another", "archive", "byte order mark", "empty"],
)
def test_other_lists_are_left_to_be_compressed_later(
    tmp_path: Path, pieces: list[bytes], last: bytes | None
) -> None:
    _, finished = follow(tmp_path, pieces, last)
    assert not finished
    assert only(tmp_path) == ["list"]


def test_invalid_and_large_lists_are_not_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower, finished = follow(tmp_path, [text(3), b"nonsense\n", text(2)])
    assert finished
    assert follower.take_lists() is None
    (tmp_path / "list").unlink()
    monkeypatch.setattr(following, "_MOST_PARSED", 100)
    follower, finished = follow(tmp_path, [text()])
    assert finished
    assert follower.take_lists() is None
    assert gzip.decompress((tmp_path / "list.gz").read_bytes()) == text()


def test_a_failed_decoder_leaves_no_archive(tmp_path: Path) -> None:
    path, packed = tmp_path / "list", tmp_path / "list.gz"

    def fail() -> None:
        with follow_list(path, packed, GROUPS) as follower:
            path.write_bytes(text())
            follower.advance()
            assert len(only(tmp_path)) == 2
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert only(tmp_path) == ["list"]


def test_runs_store_the_same_lists(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    def contents(name: str) -> tuple[Any, ...]:
        tune(toy.configuration(name, maximum_iterations=2))
        work = toy.directory / name
        with NBestStore.open(work / "nbests.lmdb") as store:
            merged = store.tuning_set()
        return (work / "run1.best15.out.gz").read_bytes(), merged.dense.tobytes(), merged.stats

    followed = contents("followed")
    monkeypatch.setattr(ListFollower, "finish", lambda follower: bool(follower._give_up()))
    read = contents("read")
    assert followed[:2] == read[:2]
    np.testing.assert_array_equal(followed[2], read[2])
