"""Lists that arrive in pieces are those that are read as a whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.nbest.block import NBestList, concatenate
from formats.nbest.feeding import NBestFeed
from formats.nbest.files import read_nbest


def feed(pieces: list[bytes], block_bytes: int = 60) -> list[NBestList]:
    parser = NBestFeed("list", block_bytes=block_bytes)
    blocks = [block for piece in pieces for block in parser.feed(piece)]
    return blocks + parser.finish()


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.lists(st.integers(1, 90), max_size=30),
    st.booleans(),
)
def test_pieces_make_the_whole(sizes: list[int], cuts: list[int], has_end: bool) -> None:
    lines = [
        f"{sentence} ||| t{row} ||| LM0= {row} f_{row}= 1 ||| -{sentence}"
        for sentence, size in enumerate([*sizes, 1])
        for row in range(size)
    ]
    text = ("\n".join(lines) + "\n" * has_end).encode()
    bounds = np.cumsum([0, *cuts])
    pieces = [text[i:j] for i, j in zip(bounds, [*bounds[1:], len(text)], strict=True)]
    blocks = feed(pieces)
    seen = [set(block.sentence_ids.tolist()) for block in blocks]
    assert sum(map(len, seen)) == len(set().union(*seen))
    whole = concatenate(blocks)
    assert whole.lines.tolist() == list(range(1, len(lines) + 1))
    assert [whole.text(i) for i in range(len(whole))] == [
        line.split(" ||| ")[1].encode() for line in lines
    ]
    assert whole.scores.tolist() == [float(line.split(" ||| ")[3]) for line in lines]


def test_errors_name_the_line_of_the_whole_list(tmp_path: Path) -> None:
    good = b"".join(b"%d ||| a ||| LM0= 1 ||| -1\n" % number for number in range(20))
    for rest in (b"x\n", b"3 ||| a ||| LM0= 1 ||| -1\n"):
        path = tmp_path / "list"
        path.write_bytes(good + rest)
        with pytest.raises(FormatError) as expected:
            read_nbest(path)
        with pytest.raises(FormatError) as found:
            feed([good + rest[:1], rest[1:]])
        assert str(found.value).removeprefix("list") == str(expected.value).removeprefix(str(path))


def test_nothing_is_no_block() -> None:
    assert feed([]) == []
    assert feed([b"\n", b"\n"]) == []
