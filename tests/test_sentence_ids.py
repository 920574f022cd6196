"""Test the decision whether lines begin with sentence ids, row by row of its table."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mosesplug.errors import DataError
from mosesplug.sentence_ids import TRANSLATION_KEYS, ListedIds, TextLines, begins_with_ids

SENTENCES = (
    "the house is small",
    "they play the flute",
    "we see a town",
    "a dog runs",
    "yes it is",
)
NAMES = ("alice", "bob", "carol", "dave", "erin")
"""Ids without digits, marks or a common prefix."""
OTHERS = ("she sings", "he reads a book", "it rains", "stop that noise", "go home now")
"""Sentences whose first words stand nowhere else."""
FORMED = ("utt-a", "spk_b", "x/1", "3:20", "0001")


def join(ids: Sequence[str], texts: Sequence[str] = SENTENCES) -> list[bytes]:
    return [f"{key} {text}".encode() for key, text in zip(ids, texts, strict=False)]


def encode(texts: Sequence[str]) -> list[bytes]:
    return [text.encode() for text in texts]


def objects(
    ids: Sequence[object], texts: Sequence[str] = SENTENCES, key: str = "id"
) -> list[bytes]:
    pairs = zip(ids, texts, strict=False)
    return [f'{{"{key}": "{each}", "text": "{text}"}}'.encode() for each, text in pairs]


def decide(
    *sides: list[bytes],
    ids: bool | None = None,
    listed: Sequence[str] | None = None,
    hypotheses: Sequence[bytes] = (),
) -> bool | str:
    """Return the decision, "refused" instead of an error."""
    texts = [TextLines.of_lines(f"text{n}", each) for n, each in enumerate(sides)]
    known = None if listed is None else ListedIds(frozenset(listed), lambda: hypotheses)
    try:
        return begins_with_ids(texts, ids, known)
    except DataError as error:
        message = str(error)
        assert "--ids" in message
        assert "--no-ids" in message
        assert message.startswith("text")
        return "refused"


PLAIN = encode(SENTENCES)
BARE = encode([f'{{"text": "{text}"}}' for text in SENTENCES])
LONG = [f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(60)]
SHUFFLED = [f"{word[-1]}{word[-2]}x{word}" for word in LONG]
"""60 distinct words without a common prefix."""


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (join(FORMED[:3]), True),
        (join(FORMED[:3])[::-1], True),
        ([*join(FORMED[:3]), b"other of another set"], True),
        (join(("utt-a", "spk_b", "missing-1")), True),  # the error is that of the missing id
        (objects(FORMED[:3]), True),
        (objects(FORMED[:3], key="utt"), True),
        (join(("utt-a", "bob", "carol")), "refused"),
        (join(("v1", "v2", "v3")), "refused"),
        (objects(("v1", "v2", "v3")), "refused"),
        (PLAIN[:3], False),
        (BARE[:3], False),
        (encode(OTHERS), False),
        (encode(["yes", "no", "maybe"]), False),
        (encode(["", "", "a b"]), False),
    ],
)
def test_beside_lists_whose_ids_are_texts(lines: list[bytes], expected: bool | str) -> None:
    assert decide(lines, listed=FORMED[:3]) == expected
    assert decide(lines, listed=FORMED[:3], ids=False) is False


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (join("01234"), True),
        (join("30142"), True),
        (join("10"), True),
        (objects("210"), True),
        (objects("0"), True),
        (join("12345"), "refused"),
        (join("21354"), "refused"),
        (join(("7", "8", "9", "10", "11")), "refused"),
        (join(("0007", "0109", "0200", "1000", "1003")), "refused"),
        (objects("123"), "refused"),
        (objects(("utt-a", "utt-b")), "refused"),
        (join(FORMED), "refused"),
        (join(("utt-a", "utt-b")), "refused"),
        (join(("utta", "uttb", "uttc", "uttd", "utte")), "refused"),
        (join(SHUFFLED, ["a text"] * 60), "refused"),
        (PLAIN, False),
        (BARE, False),
        (objects(("dev", "dev", "dev")), False),  # an id of a set, not of a line
        (encode(OTHERS), False),
        (join(("2", "3"), ("dogs bark", "cats sleep")), False),
        (encode(["1 2 0", "0 1 2", "2 2 1"]), "refused"),
        (encode(["3 2 1", "1 3 2", "7 2 1"]), False),
        (encode(["utt-a", "utt-b", "utt-c"]), False),  # words alone
        (encode(["u12 u7 u9", "u31 u8", "u44 u2 u6"]), False),  # words of the same form
        (join(LONG[:4], ["is a word"] * 4), False),
        (encode([f"{word}" for word in SHUFFLED]), False),
    ],
)
def test_beside_lists_whose_ids_are_numbers(lines: list[bytes], expected: bool | str) -> None:
    assert decide(lines, listed=()) == expected
    assert decide(lines, listed=(), ids=False) is False


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # Both look like ids.
        (join(FORMED), join(FORMED, OTHERS), True),
        (join(FORMED), join(FORMED[::-1], OTHERS), True),
        (join(FORMED), objects(FORMED[::-1]), True),
        (objects(FORMED), objects(FORMED[::-1]), True),
        (join(FORMED), join(("a-1", "b-2", "c-3", "d-4", "e-5")), True),  # none is in the other
        (join("01234"), join("43210", OTHERS), True),
        # One side looks like ids.
        (objects(NAMES), join(NAMES), True),
        (join(FORMED), PLAIN, "refused"),
        (PLAIN, join(FORMED), "refused"),
        (join("12345"), PLAIN, "refused"),
        (objects(NAMES), PLAIN, "refused"),
        (objects(NAMES), BARE, "refused"),
        # The same set of distinct first words.
        (join(NAMES), join(NAMES[::-1], OTHERS), True),
        (join(NAMES[:2]), join(NAMES[1::-1], OTHERS), True),
        (join(SHUFFLED[:20], ["a b"] * 20), join(SHUFFLED[:20], ["a c"] * 20), True),
        (join(("a-1", "b-1")), join(("a-1", "b-1"), OTHERS), True),
        (join(NAMES), join(NAMES, OTHERS), "refused"),
        (join(NAMES[:4]), join(NAMES[:4], OTHERS), False),
        (PLAIN, encode([f"{text} indeed" for text in SENTENCES]), False),
        # Most of the first words.
        (
            join([*SHUFFLED[:20], "odd"], ["a b"] * 21),
            join([*SHUFFLED[:20], "even"], ["a c"] * 21),
            "refused",
        ),
        (join([*NAMES[:4], "odd"]), join([*NAMES[:4], "even"], OTHERS), False),
        # Words.
        (PLAIN, PLAIN, False),
        (join(SHUFFLED[:20], ["a b"] * 20), join(SHUFFLED[:20], ["a b"] * 20), False),
        (encode(SHUFFLED[:20]), encode(SHUFFLED[:20][::-1]), False),  # lists of words
        (PLAIN, encode(OTHERS), False),
        (BARE, BARE, False),
        (BARE, PLAIN, False),
        (objects(("dev", "dev")), objects(("dev", "dev")), False),
        (encode(["1 dog"]), encode(["1 cat"]), False),
    ],
)
def test_texts_beside_each_other(
    first: list[bytes], second: list[bytes], expected: bool | str
) -> None:
    assert decide(first, second) == expected
    assert decide(second, first) == expected
    assert decide(first, second, ids=False) is False


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (encode(["w1 a b", "w2 c d", "w3 e f"]), False),
        (encode(["w1 a b", "w2 c d", "odd-3 e f"]), False),
        (encode(["w1 a b", "odd-2 c d", "odd-3 e f"]), "refused"),
        (join("10"), True),
        (encode(["0 a", "1 b"]), True),
        (join("01234"), True),
        (objects(("w1", "w2", "w3")), "refused"),
    ],
)
def test_words_of_hypotheses_are_no_ids(lines: list[bytes], expected: bool | str) -> None:
    hypotheses = encode(["w1 a", "w1 b", "w2 c", "x w3 e"])
    assert decide(lines, listed=(), hypotheses=hypotheses) == expected
    assert decide(encode(["0 1", "1 1"]), listed=(), hypotheses=encode(["0", "1"])) is False
    assert decide(join("01234"), listed=(), hypotheses=encode(list("01234"))) is True
    # One text begins with ids, and the other with words that the first has behind them.
    named = encode(["u-1 w1 a b", "u-2 w2 c d", "u-3 w3 e f"])
    plain = encode(["w1 a b", "w2 c d", "w3 e f"])
    assert decide(named, plain) == decide(plain, named) == "refused"
    with pytest.raises(DataError, match="text0:1: the line begins with 'u-1', which"):
        begins_with_ids([TextLines.of_lines("text1", plain), TextLines.of_lines("text0", named)])


def test_several_texts_decide_together() -> None:
    named, plain = join(FORMED), PLAIN
    assert decide(named, named[::-1], join(FORMED, OTHERS)) is True
    assert decide(named, plain, named) == "refused"
    assert decide(named, plain, listed=FORMED) == "refused"
    assert decide(named, objects(FORMED), listed=FORMED) is True
    assert decide(join(NAMES), join(NAMES[::-1], OTHERS), plain) is False
    assert decide([], named, listed=FORMED) is True
    assert decide(listed=()) is False


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b"a x", b"b y", b"a z"], "text0:3: the sentence id 'a' is repeated. Begin each line"),
        ([b"a x", b"", b"b z"], "text0:2: there is no id"),
    ],
)
def test_a_caller_who_says_ids_gives_them(lines: list[bytes], message: str) -> None:
    assert decide(join(NAMES), PLAIN[:4], ids=True, listed=()) is True
    with pytest.raises(DataError, match=message):
        begins_with_ids([TextLines.of_lines("text0", lines)], True)


@pytest.mark.parametrize(
    ("lines", "ids", "texts"),
    [
        ([b"a x y", b" b  z ", b"c"], ["a", "b", "c"], [b"x y", b"z", b""]),
        ([b"a x\ty", b"b z"], ["a", "b"], [b"x\ty", b"z"]),
        ([b"a b\tx y", b"c\t"], ["a b", "c"], [b"x y", b""]),
        ([b"     1\tx y", b"     2\tz"], ["1", "2"], [b"x y", b"z"]),
        ([b"\xff x"], ["\udcff"], [b"x"]),
        ([b'{"utt": "a", "pred_text": "x"}'], ["a"], [b"x"]),
        ([b'{"id": 3, "text": "x", "pred_text": "y"}'], ["3"], [b"y"]),
    ],
)
def test_lines_are_split(lines: list[bytes], ids: list[str], texts: list[bytes]) -> None:
    found = TextLines.of_lines("text", lines, TRANSLATION_KEYS)
    assert (list(found.ids), list(found.texts)) == (ids, texts)


@pytest.mark.parametrize(
    "lines", [[b'{"text": "c"}', b"{ d }"], [b'{"id": 1}'], [b'{"text": "c"}', b'{"txt": "d"}']]
)
def test_a_file_of_json_objects_has_only_such_lines(lines: list[bytes]) -> None:
    with pytest.raises(DataError, match=r"refs:\d: this is no JSON object with a text \(text, ref"):
        TextLines.of_lines("refs", lines)
    assert not TextLines.of_lines("refs", [b"{ d }", b"{}"]).is_json
