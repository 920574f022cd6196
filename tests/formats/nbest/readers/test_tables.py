"""Tables and blocks: the bulk parser against the reader of single lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.nbest import tables
from formats.nbest.block import NBestList, concatenate
from formats.nbest.list_format import SentenceIds
from formats.nbest.regroup import join_lines, join_sentences, make_block, pack_texts, take_rows
from formats.nbest.tables import TableForm, parse_table

FORMS = (
    TableForm(("id", "hyp", "lm"), "texts"),
    TableForm(("id", "hyp", "lm"), "integers"),
    TableForm(("lm", "-", "id"), "texts"),
    TableForm(("hyp", "lm", "tm"), None, 3, keeps_empty=True),
    TableForm(("hyp",), None, 2, keeps_empty=True),
)
FIELDS = st.sampled_from(
    ["0", "1", "12", "-1.5", "1e-3", " 2 ", "u1", "u1", "a b", "", "nan", "\r", "1\r", "+3", "é"]
)


def _try(*arguments: object) -> NBestList | str:
    try:
        return tables._parse_slowly(*arguments)  # type: ignore[arg-type]
    except ValueError as error:
        return str(error)


@given(
    st.sampled_from(FORMS),
    st.lists(st.lists(FIELDS, min_size=1, max_size=4), min_size=1, max_size=4),
)
def test_blocks_are_parsed_like_lines(form: TableForm, rows: list[list[str]]) -> None:
    text = "".join("\t".join(row) + "\n" for row in rows).encode()
    slow_ids, fast_ids = SentenceIds(), SentenceIds()
    slow = _try(text, form, "list", 5, slow_ids, 4)
    fast = tables.parse_at_once(text, form, "list", 5, fast_ids, 4)
    if fast is None:
        return
    assert isinstance(slow, NBestList)
    assert slow_ids.names == fast_ids.names
    assert slow.groups == fast.groups
    for name in ("sentence_ids", "dense", "lines"):
        np.testing.assert_array_equal(getattr(slow, name), getattr(fast, name))
    assert [slow.text(row) for row in range(len(slow))] == [fast.text(r) for r in range(len(fast))]


def test_usual_tables_are_parsed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tables, "_parse_slowly")
    text = b"u1\ta b\t-1.5\nu1\t\t2\nu\xff\tc\t 3\r\n"
    found = parse_table(text, FORMS[0], "list", 1, SentenceIds(), 0)
    assert found.dense.tolist() == [[-1.5], [2], [3]]
    assert [found.text(row) for row in range(3)] == [b"a b", b"", b"c"]


def block(sentences: list[int], first: int) -> NBestList:
    """Rows whose texts, features and lines are their numbers."""
    rows = np.arange(first, first + len(sentences))
    texts = [b"t%d" % row for row in rows]
    sparse = [{f"s{row % 3}": float(row)} if row % 2 else {} for row in rows.tolist()]
    dense = rows[:, None].astype(np.float64)
    ids = np.array(sentences, dtype=np.int64)
    return make_block("list", ids, pack_texts(texts), ("n",), dense, rows, sparse=sparse)


@given(st.lists(st.integers(0, 1), max_size=30), st.lists(st.integers(0, 6), max_size=15))
def test_blocks_of_whole_sentences(steps: list[int], sizes: list[int]) -> None:
    sentences = np.cumsum(steps).tolist()
    n = len(sentences)
    edges = [0, *np.minimum(np.cumsum(sizes), n).tolist(), n]

    def blocks() -> Iterator[NBestList]:
        for begin, end in pairwise(edges):
            yield block(sentences[begin:end], begin)

    found = list(join_sentences(blocks()))
    for before, after in pairwise(found):
        assert before.sentence_ids[-1] < after.sentence_ids[0]
    if not sentences:
        assert not found
        return
    whole = concatenate(found)
    assert whole.sentence_ids.tolist() == sentences
    for row in range(n):
        assert whole.text(row) == b"t%d" % row
        part = slice(*whole.sparse_indptr[row : row + 2])
        names = [whole.sparse_names[i] for i in whole.sparse_indices[part]]
        assert (names, whole.sparse_data[part].tolist()) == (
            ([f"s{row % 3}"], [row]) if row % 2 else ([], [])
        )
    assert whole.dense[:, 0].tolist() == list(range(n))


def test_rows_keep_only_their_text() -> None:
    found = take_rows(block([0] * 1000, 0), 500, 502)
    assert len(found.buffer) == len(b"t500t501")
    assert found.text(1) == b"t501"


@given(st.lists(st.sampled_from([b"", b"a", b"\n", b"b\nc", b"d\n\n"]), max_size=10))
def test_lines_are_not_cut(chunks: list[bytes]) -> None:
    found = list(join_lines(chunks))
    text = b"".join(chunks)
    assert b"".join(found) == text + (b"" if not text or text.endswith(b"\n") else b"\n")
    assert all(each.endswith(b"\n") for each in found)
