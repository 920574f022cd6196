"""Texts that are not what they seem: each kind on either side, and sound texts."""

from __future__ import annotations

import itertools
import subprocess
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from formats.references import read_references
from formats.text import read_lines
from mosesplug.learning.lists.merging import store_lists
from mosesplug.metrics import metric
from mosesplug.tuning.text_signs.comparison import find_source_signs, find_text_signs
from mosesplug.tuning.text_signs.traits import TRAITS, Trait
from mosesplug.tuning.text_signs.view import TextView, views_of_signatures
from mosesplug.tuning.warning_signs import WarningSign

DEMO = Path(__file__).parents[3] / "moses-config" / "demo"


def names(found: Sequence[WarningSign]) -> list[str]:
    return [each.name for each in found]


SOURCE = [b"das haus ist klein und der hund sieht es nicht ."] * 20
TRANSLATION = [b"the house is small , and the dog &apos;s eyes do not see it ."] * 20


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        (b"the house is small , and the dog &apos;s eyes do not see it .", None),
        (b"the little house is small and the dog cannot see it .", None),
        (b"the house is small , and the dog 's eyes do not see it .", "escapes"),
        (b"The House Is Small , And The Dog &apos;s Eyes do not see it .", "case"),
        (b"the house is small, and the dog &apos;s eyes do not see it.", "punctuation"),
        (b"la maison est petite et le chien ne la voit pas .", "unknown words"),
    ],
)
def test_references_of_another_kind(reference: bytes, name: str | None) -> None:
    found = find_text_signs([[reference] * 20], TRANSLATION, source=SOURCE)
    assert names(found) == ([] if name is None else [name])


@pytest.mark.parametrize("side", ["translations", "references"])
@pytest.mark.parametrize("escape", ["&#124;", "&quot;", "&lt;", "&#91;", "&amp;"])
def test_escapes_of_characters_that_the_other_side_lacks(escape: str, side: str) -> None:
    plain = [f"the house number {n} is small .".encode() for n in range(20)]
    changed = [line.replace(b"is", f"is {escape}".encode()) for line in plain]
    texts = (changed, [plain]) if side == "translations" else (plain, [changed])
    (found,) = find_text_signs(texts[1], texts[0])
    assert found.name == "escapes"
    assert found.message.startswith(f"20 of 20 {side} have escaped characters, as '{escape}', and")
    assert not find_text_signs([changed], changed)
    assert not find_text_signs([plain], [changed[0], *plain[1:]])


def test_few_escapes_on_the_other_side_do_not_hide_many() -> None:
    plain = of_lines(str)
    changed = of_lines(lambda x: x.replace("'", "&apos;"))
    (found,) = find_text_signs([[changed[0], *plain[1:]]], changed)
    assert found.name == "escapes"
    assert "and references have 1 of 40: they do not match" in found.message


def test_case_does_not_count_where_the_metric_folds_it() -> None:
    upper = [[line.title().replace(b"&Apos;S", b"&apos;s") for line in TRANSLATION]]
    assert "case" in names(find_text_signs(upper, TRANSLATION, source=SOURCE))
    assert "case" not in names(find_text_signs(upper, TRANSLATION, [TextView(is_cased=False)]))


def test_input_and_reference_swapped() -> None:
    """A decoder given its own target language passes the words on."""
    assert "resembles input" in names(find_text_signs([SOURCE], TRANSLATION, source=TRANSLATION))
    # Correction of a text leaves most of it as it was.
    corrected = [line.replace(b"small", b"little") for line in TRANSLATION]
    assert not find_text_signs([corrected], TRANSLATION, source=TRANSLATION)


def test_a_reference_that_is_the_input() -> None:
    assert names(find_source_signs(SOURCE, [TRANSLATION, SOURCE])) == ["reference is input"]
    assert not find_source_signs(SOURCE, [TRANSLATION])
    assert not find_source_signs([b"42"] * 50, [[b"42"] * 50])
    assert find_source_signs(SOURCE, [SOURCE], TRANSLATION)
    # Into the same language: translations are much like the input, too.
    assert not find_source_signs(SOURCE, [SOURCE], SOURCE)


def test_the_recorded_system_is_sound(multi30k: Path) -> None:
    lists = [multi30k / "mert-work/run1.best100.out.gz"]
    place = multi30k / "text"
    with store_lists(lists, place / "dev.en", metric("BLEU", "")) as stored:
        outputs = [stored.store.hypotheses(sentence, 1)[0] for sentence in range(200)]
    source, references = read_lines(place / "dev.de"), read_references(place / "dev.en")
    assert not find_source_signs(source, references)
    references = [references[0][:200]]
    assert not find_text_signs(references, outputs, source=source[:200])
    assert find_text_signs([source[:200]], outputs, source=references[0])


def test_the_demo_is_sound() -> None:
    source, references = read_lines(DEMO / "tune.tarvian"), read_references(DEMO / "tune.english")
    assert not find_source_signs(source, references)
    assert not find_text_signs(references, references[0], source=source)


NOUNS = ("house", "garden", "café", "winter", "dog", "river", "road", "student")
PLAIN = [
    f"The old {NOUNS[n % 8]} of Anna 's friend is , as {NOUNS[n // 8]} and {NOUNS[-n % 7]} are , "
    f"number {n} ."
    for n in range(40)
]
"""Tokenized and cased sentences."""


def of_lines(change: Callable[[str], str], every: int = 1) -> list[bytes]:
    """Return the sentences, some of them changed."""
    return [(change(x) if n % every == 0 else x).encode() for n, x in enumerate(PLAIN)]


def split_subwords(text: str) -> str:
    return " ".join(word[:2] + "@@ " + word[2:] if len(word) > 4 else word for word in text.split())


KINDS: dict[str, tuple[str, Callable[[str], str]]] = {
    "-report-segmentation": ("segmentation", lambda x: x.replace(" , ", " |0-3| , |4-4| ")),
    "-report-segmentation-enriched": (
        "segmentation",
        lambda x: x.replace(" , ", " |0-3,wa=0-0 1-2 ,total=-1.2, LM0= -3| , "),
    ),
    "-report-all-factors": ("factors", lambda x: " ".join(f"{w}|NN|{w[:2]}" for w in x.split())),
    "-mark-unknown": ("unknown marks", lambda x: x.replace(" friend", " friend|UNK|UNK|UNK")),
    "-print-alignment-info": ("alignments", lambda x: f"{x} ||| 0-0 1-1"),
    "sgm": ("markup", lambda x: f'<seg id="1">{x}</seg>'),
    "entities": ("escapes", lambda x: x.replace("'", "&apos;")),
    "numbers of characters": ("escapes", lambda x: x.replace("'", "&#39;").replace(",", "&#124;")),
    "no-break spaces": ("blanks", lambda x: x.replace(" ,", "\u00a0,")),
    "narrow no-break spaces": ("blanks", lambda x: x.replace(" old ", " old\u202f")),
    "tabs": ("blanks", lambda x: x.replace(" is ", "\tis ")),
    "ideographic blanks": ("blanks", lambda x: x.replace(" is ", " is\u3000")),
    "soft hyphens": ("invisible characters", lambda x: x.replace("garden", "gar\u00adden")),
    "byte order marks": ("invisible characters", lambda x: "\ufeff" + x),
    "zero-width blanks": ("invisible characters", lambda x: x.replace(" is", "\u200b is")),
    "BPE": ("subwords", split_subwords),
    "SentencePiece": ("pieces", lambda x: " ".join("▁" + word for word in x.split())),
    "tokenizer.perl -a": ("split hyphens", lambda x: x.replace(" old ", " well @-@ known ")),
    "NFD": ("decomposition", lambda x: unicodedata.normalize("NFD", x)),
    "quotes": ("quotes", lambda x: x.replace("'", "’")),
    "full width": ("full width", lambda x: x.replace(",", "，")),
    "lower-cased": ("case", str.lower),
    "upper-cased": ("case", str.upper),
    "detokenized": ("punctuation", lambda x: x.replace(" ,", ",").replace(" .", ".")),
    "no punctuation": ("no punctuation", lambda x: x.replace(" ,", "").replace(" .", "")),
    "no blanks": ("splitting", lambda x: x.replace(" ", "")),
    "letters": ("splitting", lambda x: " ".join(x.replace(" ", ""))),
}


@pytest.mark.parametrize("side", ["translations", "references"])
@pytest.mark.parametrize("kind", KINDS)
def test_text_of_another_kind_on_one_side(kind: str, side: str) -> None:
    name, change = KINDS[kind]
    changed, plain = of_lines(change), of_lines(str)
    texts = (changed, [plain]) if side == "translations" else (plain, [changed])
    found = find_text_signs(texts[1], texts[0])
    assert name in names(found)
    assert all(len(sign.message) < 400 and "\n" not in sign.message for sign in found)
    # On both sides, it is how these people write.
    assert name not in names(find_text_signs([changed], changed))


@pytest.mark.parametrize("kind", ["-report-segmentation", "no-break spaces", "sgm", "entities"])
def test_some_lines_are_enough(kind: str) -> None:
    name, change = KINDS[kind]
    assert name in names(find_text_signs([of_lines(str)], of_lines(change, every=9)))
    assert name in names(find_text_signs([of_lines(str)[:1]], of_lines(change)[:1]))


@pytest.mark.parametrize("trait", [each for each in TRAITS if each.command], ids=lambda t: t.name)
def test_commands_of_remedies_take_the_kind_away(trait: Trait) -> None:
    changes = [change for name, change in KINDS.values() if name == trait.name]
    for plain, change in itertools.product(PLAIN[:5], changes):
        text = change(plain)
        if trait.name == "split hyphens":
            plain = plain.replace(" old ", " well-known ")
        for line in (text, f"0 ||| {text} ||| LM0= -1.5 ||| -3"):
            done = subprocess.run(
                ["/bin/sh", "-c", trait.command], input=line.encode(), capture_output=True
            )
            found = done.stdout.decode()
            assert not trait.find(found), found
            assert found.split() == line.replace(text, plain).split()


def test_messages_name_what_and_where_and_the_remedy() -> None:
    (sign,) = find_text_signs(
        [of_lines(str)], of_lines(KINDS["-report-segmentation"][1]), rewriting="lists"
    )
    assert sign.message == (
        "40 of 40 translations have phrase boundaries of Moses' -report-segmentation, as"
        " '|0-3|', and references have none: each counts as a word. Decode without"
        " -report-segmentation (-t), or remove them: --transform"
        " \"sed -E 's/ *\\|[0-9]+-[0-9]+(,[^|]*)?\\|//g'\""
    )
    (sign,) = find_text_signs([of_lines(KINDS["tabs"][1])], of_lines(str), rewriting="lists")
    assert sign.message.endswith("by blanks: perl -CSD -pe 's/[^\\S\\n]/ /g'")


@pytest.mark.parametrize(
    ("signature", "kinds"),
    [
        ("BLEU|nrefs:1|case:mixed|tok:13a|version:x", {"tabs", "no-break spaces", "detokenized"}),
        ("TER-SACREBLEU|nrefs:1|case:mixed|tok:none|version:x", {"tabs", "ideographic blanks"}),
        ("CHRF|nrefs:1|case:mixed|beta:2|space:no|version:x", {"tabs", "detokenized", "no blanks"}),
        ("CER|case:mixed|blanks:remove|version:x", {"tabs", "no blanks", "letters"}),
        ("BLEU|nrefs:1|case:lc-ascii|tok:none|version:x", {"lower-cased", "upper-cased"}),
        (
            "WER|case:mixed|tok:none|refs:moses|normalize:lower+nfkc+punct|version:x",
            {"lower-cased", "detokenized", "no punctuation", "NFD", "full width"},
        ),
        ("COMET|outside:mean", {*KINDS}),
    ],
)
def test_what_a_metric_does_not_see_is_no_sign(signature: str, kinds: set[str]) -> None:
    views = views_of_signatures([signature])
    for kind in kinds:
        name, change = KINDS[kind]
        for texts in ((of_lines(change), of_lines(str)), (of_lines(str), of_lines(change))):
            assert name not in names(find_text_signs([texts[0]], texts[1], views)), kind
    if views:
        changed = of_lines(KINDS["-report-segmentation"][1])
        assert "segmentation" in names(find_text_signs([of_lines(str)], changed, views))


def test_views_of_weighted_sums() -> None:
    mixed = metric("BLEU,WER", "tokenize:13a").prepare([[b"a"]]).signature
    assert [view.tokenizer for view in views_of_signatures([mixed])] == ["13a"]
    sum_of_two = "BLEU,CHRF|weights:1+1|BLEU|nrefs:1|case:mixed|tok:none|CHRF|nrefs:1|space:no"
    assert [view.blanks for view in views_of_signatures([sum_of_two])] == ["ascii", "ignored"]


def test_one_of_several_references_is_named() -> None:
    plain = of_lines(str)
    found = find_text_signs([plain, of_lines(KINDS["sgm"][1]), plain], plain)
    assert names(found) == ["markup"]
    assert found[0].message.startswith(
        "40 of 40 lines of reference 1 have tags, as '<seg id=\"1\">'"
    )


@pytest.mark.parametrize("n", [2, 40])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_empty_texts(n: int, share: float) -> None:
    plain = of_lines(str)[:n]
    emptied = [line if place >= share * n else b" " for place, line in enumerate(plain)]
    (found,) = find_text_signs([plain, emptied], plain)
    count = "all lines" if share == 1.0 else f"{n // 2} of {n} lines"
    assert found.message.startswith(f"{count} of reference 1 are empty: ")
    (found,) = find_text_signs([plain], emptied)
    assert found.message.startswith(f"{int(share * n)} of {n} translations are empty. ")
    # Silence that is recognized as silence, and a little that is not.
    assert not find_text_signs([emptied], emptied)
    assert not find_text_signs([[b"", *of_lines(str)[1:]]], of_lines(str))


def test_texts_that_are_not_utf8() -> None:
    plain = of_lines(str)
    latin = [line.decode().encode("latin-1") for line in plain]
    (found,) = find_text_signs([latin], plain)
    assert found.name == "encoding"
    assert "references are not in UTF-8" in found.message
    assert not find_text_signs([latin], latin)


def test_text_without_blanks_is_sound() -> None:
    """As of speech in Chinese, of which characters are compared."""
    lines = [
        f"今天天气很好{'零一二三四五六七八九'[n % 10]}我们去公园玩".encode() for n in range(60)
    ]
    other = [line.replace("我们".encode(), "他们".encode()) for line in lines]
    for name in ("CER", "CHRF"):
        views = views_of_signatures([metric(name).prepare([lines]).signature])
        assert not find_text_signs([lines], other, views)
    assert names(find_text_signs([lines], other)) == ["unknown words"]
