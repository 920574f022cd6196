"""Lists as data frames and nested lists, in ``optimize`` and ``rerank``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mosesplug
from mosesplug.api.lists.sources import convert_lists

TEXTS = [["the house is small", "a house is little"], ["yes it is", "yes it", "no it is"]]
SCORES = [[-3.0, -2.5], [-1.0, -0.5, -0.25]]
REFERENCES = ["the house is small", "yes it is"]


@dataclass(frozen=True)
class Result:
    """What a decoder returns: Whisper's ``DecodingResult`` is such a class."""

    text: str
    lm: float
    language: str = "en"
    audio_features: object = None


class Frame:
    """The least that a data frame has."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)
        self.columns = list(columns)
        self.shape = (len(next(iter(columns.values()))), len(columns))

    def __getitem__(self, name: str) -> Any:
        return np.array(self._columns[name])


def rows(values: list[list[Any]]) -> list[Any]:
    return [value for sentence in values for value in sentence]


FRAME = {"id": [0, 0, 1, 1, 1], "hyp": rows(TEXTS), "lm": rows(SCORES)}


def nest(make: Any) -> list[list[Any]]:
    return [
        [make(text, score) for text, score in zip(texts, scores, strict=True)]
        for texts, scores in zip(TEXTS, SCORES, strict=True)
    ]


FORMS = {
    "frame": Frame(FRAME),
    "mappings": nest(lambda text, score: {"text": text, "lm": score, "lang": "en"}),
    "arrays": nest(lambda text, score: {"text": text, "lm": np.float32(score)}),
    "scores": nest(lambda text, score: {"text": text, "scores": {"lm": score}}),
    "results": nest(lambda text, score: Result(text, score, audio_features=np.zeros((2, 2)))),
    "records": [
        {"id": number, "hyp": text, "lm": score}
        for number, sentence in enumerate(nest(lambda text, score: (text, score)))
        for text, score in sentence
    ],
    "tuple": tuple(map(tuple, nest(lambda text, score: {"text": text, "lm": score}))),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_the_same_lists(form: str) -> None:
    lists = convert_lists(FORMS[form])
    assert lists.texts == rows(TEXTS)
    assert lists.sentence_ids.tolist() == FRAME["id"]
    assert lists.names == ("lm",)
    assert lists.dense[:, 0].tolist() == rows(SCORES)
    options: dict[str, Any] = {"references": REFERENCES, "metric": "WER"}
    expected = mosesplug.optimize(
        features=np.array(rows(SCORES))[:, None],
        sentence_ids=FRAME["id"],
        hypotheses=rows(TEXTS),
        names=["lm"],
        **options,
    )
    fit = mosesplug.optimize(FORMS[form], **options)
    assert repr(fit) == repr(expected)
    ranked = mosesplug.rerank(FORMS[form], {"lm": -1.0})
    assert ranked.texts == REFERENCES
    assert fit.rerank(FORMS[form]).texts == mosesplug.rerank(FORMS[form], fit.weights).texts


def test_texts_and_tuples_have_the_feature_names_of_files() -> None:
    lists = convert_lists(TEXTS)
    assert lists.texts == rows(TEXTS)
    assert lists.names == ()
    lists = convert_lists(nest(lambda text, score: (text, score)))
    assert lists.names == ("score",)
    lists = convert_lists(nest(lambda text, score: [text, score, 2 * score]))
    assert lists.names == ("score1", "score2")
    assert convert_lists(np.array([["a", "b"], ["c", "d"]])).texts == ["a", "b", "c", "d"]
    fit = mosesplug.optimize(
        TEXTS, references=REFERENCES, metric="WER", add_features={"lm": rows(SCORES)}
    )
    assert fit.score == 1.0


def test_ids_that_are_texts_find_their_references() -> None:
    references = {"v": "yes it is", "u": ["the house is small"], "w": "unused"}
    ids = ["u", "u", "v", "v", "v"]
    frame = Frame({"utt_id": ids, "text": rows(TEXTS), "lm": rows(SCORES)})
    nested = dict(zip("uv", nest(lambda text, score: (text, score)), strict=True))
    for lists in (frame, nested):
        fit = mosesplug.optimize(lists, references=references, metric="WER")
        assert fit.score == 1.0
        assert mosesplug.rerank(lists, [-1.0]).ids == ["u", "v"]
    held_out = mosesplug.optimize(
        frame,
        references=references,
        metric="WER",
        heldout_lists=frame,
        heldout_references=references,
    )
    assert held_out.held_out == 1.0
    found = mosesplug.cross_validate(Frame(FRAME), references=dict(enumerate(REFERENCES)), folds=2)
    assert len(found.folds) == 2
    with pytest.raises(mosesplug.DataError, match=r"references has no entry for .* 'v'"):
        mosesplug.optimize(frame, references={"u": "a"})


def test_a_frame_gives_what_its_table_has() -> None:
    lists = mosesplug.NBest(
        [3, 3, 5], ["a", "b", "c"], [[1, 2], [3, 4], [5, 6]], names=["LM", "TM"], scores=[1, 2, 3]
    )
    copy = convert_lists(lists.table)
    assert list(copy.table) == list(lists.table)
    assert copy.scores.tolist() == [1, 2, 3]


def test_columns_choose(tmp_path: Any) -> None:
    frame = Frame(FRAME | {"lang": ["en"] * 5, "text": ["x"] * 5})
    with pytest.raises(mosesplug.UsageError, match=r"hyp and text .* columns=\['id', 'hyp', 'lm'"):
        convert_lists(frame)
    with pytest.raises(mosesplug.UsageError, match=r"lists\['lang'\] has the type .* columns=\["):
        convert_lists(Frame(FRAME | {"lang": ["en"] * 5}))
    with pytest.raises(mosesplug.UsageError, match="lists has no column 'qe', only id, hyp"):
        convert_lists(frame, ["id", "hyp", "qe"])
    fit = mosesplug.optimize(
        frame, columns=["id", "hyp", "lm"], references=REFERENCES, metric="WER"
    )
    assert list(fit.weights) == ["lm"]
    assert mosesplug.rerank(frame, [1.0], columns=["id", "hyp", "lm"]).lists.names == ("lm",)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (Frame({"hyp": ["a"], "lm": [1.0]}), "has no column of sentence ids, only hyp, lm"),
        (Frame({"id": [1, 0], "hyp": ["a", "b"]}), r"is 0 in row 1, after other .* sort the rows"),
        (Frame({"id": ["a", "b", "a"], "hyp": ["a", "b", "c"]}), "is a in row 2, after other"),
        (Frame({"id": [-1], "hyp": ["a"]}), "is -1 in row 0"),
        (Frame({"id": [0.5], "hyp": ["a"]}), "is 0.5 in row 0: give integers, or texts"),
        (Frame({"id": [0], "hyp": ["a"], "lm": [np.nan]}), r"features\[0, 0\] \(lm\) is nan"),
        ([{"text": "a"}], r"lists\[0\] has no sentence id: .*\[sentence\]\[hypothesis\]"),
        ([["a"], []], r"lists\[1\]: .* the sentence has no hypothesis"),
        ([["a"], [{"text": "b"}, 3]], r"lists\[1\]: a hypothesis is a number, not an object"),
        ([[("a", 1.0)], [("b",)]], r"lists\[1\]: the hypothesis has no feature score"),
        ([[("a", float("nan"))]], r"lists\[0\]: the value of score is not finite"),
        ([], "lists is a list: give an NBest, a file, a data frame, or nested lists"),
        (3, "lists is a int: give an NBest"),
    ],
)
def test_wrong_lists(lists: Any, message: str) -> None:
    with pytest.raises((mosesplug.UsageError, mosesplug.DataError), match=message):
        mosesplug.rerank(lists, [1.0])


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FRAME | {"id": ["u", "u", "v", "v", "v"]})
    fit = mosesplug.optimize(
        frame, references=dict(zip("uv", REFERENCES, strict=True)), metric="WER"
    )
    assert fit.score == 1.0
    again = convert_lists(fit.rerank(frame).lists.to_pandas())
    assert again.ids == ("u", "v")
    assert mosesplug.rerank(frame.set_index(frame["lm"]), [-1.0]).texts == REFERENCES
    numbered = convert_lists(frame.rename(columns={"lm": 7}))
    assert numbered.names == ("7",)
    with pytest.raises(mosesplug.UsageError, match="lists has several columns 'lm'"):
        convert_lists(pandas.concat([frame, frame[["lm"]]], axis=1))
