"""JSON lines: the parser of whole blocks against the reader of single objects, and ``json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.nbest import json_structs
from formats.nbest.block import NBestList, concatenate
from formats.nbest.json_objects import ListForm
from formats.nbest.json_structs import StructParser
from formats.nbest.list_format import ListOptions, SentenceIds
from formats.nbest.registry import open_blocks

DATA = Path(__file__).parents[3] / "data"
FAST = {
    "nested_scores", "flat_scores", "scores_of_scores", "sentence_a_line", "no_texts", "no_scores",
    "crlf", "byte_order_mark", "words_dropped", "large_numbers",
}  # fmt: skip


def read(path: Path, **options: Any) -> NBestList:
    return concatenate(list(open_blocks(path, "jsonl", ListOptions(**options), SentenceIds())))


def never(*_: object) -> None:
    return None


NUMBERS = st.floats(-3e38, 3e38) | st.integers(-(10**20), 10**20)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1)
TEXTS = st.text(st.characters(codec="utf-8"))


@st.composite
def lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Objects of one hypothesis each, with the truth in their own values."""
    names = draw(st.lists(NAMES, min_size=0, max_size=4, unique=True))
    sentences = draw(st.lists(TEXTS, min_size=1, max_size=4, unique=True))
    return [
        {"id": sentence, "hyp": draw(TEXTS), "scores": {name: draw(NUMBERS) for name in names}}
        for sentence in sentences
        for _ in range(draw(st.integers(1, 3)))
    ]


FORMS = ("nested", "flat", "sentences")


@given(lists(), st.sampled_from(FORMS), st.booleans())
def test_all_forms_say_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    form: str,
    ascii_only: bool,
) -> None:
    path = tmp_path_factory.mktemp("jsonl") / "list"
    objects = rows
    if form == "flat":
        reserved = {"id", "utt_id", "hyp", "text", "hypothesis", "scores", "hyps", "nbest"}
        if reserved & rows[0]["scores"].keys():
            return
        objects = [{**row["scores"], "id": row["id"], "hyp": row["hyp"]} for row in rows]
    if form == "sentences":
        objects = [{"id": name, "hyps": []} for name in dict.fromkeys(row["id"] for row in rows)]
        for row in rows:
            (own,) = (each for each in objects if each["id"] == row["id"])
            own["hyps"].append({"text": row["hyp"], "scores": row["scores"]})
    path.write_text("".join(json.dumps(o, ensure_ascii=ascii_only) + "\n" for o in objects))
    found = read(path)
    blanks = bytes(range(33))
    texts = [row["hyp"].replace("\n", " ").encode().strip(blanks) for row in rows]
    assert [found.text(row) for row in range(len(found))] == texts
    names = list(rows[0]["scores"])
    order = {name: number for number, name in enumerate(dict.fromkeys(r["id"] for r in rows))}
    assert found.sentence_ids.tolist() == [order[row["id"]] for row in rows]
    assert [name for name, _ in found.groups] == names
    expected = [[float(row["scores"][name]) for name in names] for row in rows]
    np.testing.assert_array_equal(
        found.dense, np.array(expected).astype(np.float32).reshape(len(rows), len(names))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StructParser, "parse", never)
        assert_same(read(path), found)


def assert_same(one: NBestList, other: NBestList) -> None:
    for name in ("sentence_ids", "dense", "scores", "lines", "sparse_data"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert [one.text(row) for row in range(len(one))] == [other.text(r) for r in range(len(other))]
    assert (one.groups, one.has_texts) == (other.groups, other.has_texts)


@pytest.mark.parametrize("stem", sorted(FAST))
def test_usual_lists_are_parsed_at_once(monkeypatch: pytest.MonkeyPatch, stem: str) -> None:
    monkeypatch.delattr("formats.nbest.readers.jsonl._parse_slowly")
    assert len(read(DATA / "valid/nbest/jsonl" / f"{stem}.jsonl"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('{"id": 0, "hyp": "a", "lm": 1, "x": null}', '{"id": 0, "hyp": "a", "lm": 1, "x": 2}'),
        ('{"id": 0, "hyp": "a", "lm": 1, "x": "b"}', '{"id": 0, "hyp": "a", "lm": 1, "x": 2}'),
        ('{"id": 0, "hyp": "a", "scores": {"x": [1]}}', '{"id": 0, "hyp": "", "scores": {"x": 1}}'),
        ('{"id": 0, "hyp": "a", "scores": {"x": 1}}', '{"id": 0, "hyp": "", "scores": {"x": [1]}}'),
        ('{"id": 0, "hyp": "a", "lm": 1}', '{"id": 0, "hyp": "a", "lm": 1}{"id": 0, "hyp": ""}'),
        ('{"id": 0, "hyps": [{"text": "a"}]}', '{"id": 0, "hyps": []}'),
        ('{"id": 0, "hyps": [{"text": "a"}]}', '{"id": 0, "hyps": ["a"]}'),
        ('{"id": 0, "hyp": "a", "lm": 1}', '{"id": 0, "hyp": "a", "lm": true}'),
        ('{"id": 0, "hyp": "a", "lm": 1}', '{"id": 0.0, "hyp": "a", "lm": 1}'),
        ('{"id": 0, "hyp": "a", "lm": 1}', '{"id": 0, "hyp": "a", "lm": 1, "text": "b"}'),
        ('{"id": 0, "hyp": "a", "lm": 1}', '{"id": 0, "hyp": "a", "lm": 1, "utt_id": 3}'),
    ],
)  # fmt: skip
def test_both_parsers_accept_the_same(tmp_path: Path, first: str, second: str) -> None:
    path = tmp_path / "list"
    path.write_text(f"{first}\n{second}\n")
    results: list[Any] = []
    for parse in (StructParser.parse, never):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StructParser, "parse", parse)
            try:
                results.append(read(path))
            except FormatError as error:
                results.append(str(error))
    if isinstance(results[0], str):
        assert results[0] == results[1]
    else:
        assert_same(*results)


def test_keys_that_the_parser_does_not_take() -> None:
    form = ListForm("id", False, None, "hyp", False, ('a"b',), False, False, False, False)
    assert json_structs.make_parser({"id": 0, "hyp": "a", 'a"b': 1}, form, "list") is None


def test_one_numbering_for_several_files(tmp_path: Path) -> None:
    ids = SentenceIds()
    for number, names in enumerate((["b", "a"], ["b", "c"])):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(f'{{"id": "{name}", "lm": 1}}\n' for name in names))
        found = concatenate(list(open_blocks(path, "jsonl", ListOptions(), ids)))
        assert found.sentence_ids.tolist() == [0, number + 1]
    assert ids.names == ("b", "a", "c")
