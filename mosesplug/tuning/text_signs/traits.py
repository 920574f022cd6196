"""Traits that lines of one text may have and lines of another text may lack.

A trait makes the words of a line unlike those of a line without it. The remedies are commands that
take it away from text and from n-best lists alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mosesplug.tuning.text_signs.view import TextView


@dataclass(frozen=True)
class Trait:
    """A property of lines.

    Attributes:
        what: the noun for messages, such as ``no-break spaces``.
        find: returns an example of the trait in a line, or the empty text.
        effect: the effect on scores, in words.
        remedy: the remedy in words; ``{command}`` stands for the command.
        command: a filter that removes the trait from text and n-best lists, or the empty text.
        matters: whether it changes what a metric sees.
    """

    name: str
    what: str
    find: Callable[[str], str]
    effect: str = "each counts as a word"
    remedy: str = ""
    command: str = ""
    matters: Callable[[TextView], bool] = lambda view: True


def _search(pattern: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def find(line: str) -> str:
        match = compiled.search(line)
        return match[0].strip(" ") if match else ""

    return find


_FACTORS = re.compile(r"[^ |]+(?:\|[^ |]+)+")


def _find_factors(line: str) -> str:
    """Return a word with factors if nearly all words have some."""
    words = line.split(" ")
    factored = [word for word in words if _FACTORS.fullmatch(word)]
    return factored[0] if factored and 5 * len(factored) >= 4 * sum(map(bool, words)) else ""


_BLANK = re.compile(r"[^\S ]")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")


def _find_code(pattern: re.Pattern[str]) -> Callable[[str], str]:
    def find(line: str) -> str:
        match = pattern.search(line.rstrip("\r\n"))
        return f"U+{ord(match[0]):04X}" if match else ""

    return find


def _find_decomposed(line: str) -> str:
    """Return a word whose letters and accents are separate characters."""
    if line.isascii():
        return ""
    words = line.split()
    return next((word for word in words if unicodedata.normalize("NFC", word) != word), "")


TRAITS: Sequence[Trait] = (
    Trait(
        "segmentation",
        "phrase boundaries of Moses' -report-segmentation",
        _search(r"(?:^| )\|[0-9]+-[0-9]+(?:,[^|]*)?\|(?= |$)"),
        remedy="Decode without -report-segmentation (-t), or remove them: {command}",
        command=r"sed -E 's/ *\|[0-9]+-[0-9]+(,[^|]*)?\|//g'",
    ),
    Trait(
        "factors",
        "factors of Moses' -report-all-factors",
        _find_factors,
        "words with factors match no word without",
        remedy="Decode without -report-all-factors, or keep the first factor: {command}",
        command=r"sed -E 's/([^ |])\|[^ ]+/\1/g'",
    ),
    Trait(
        "unknown marks",
        "marks of unknown words",
        _search(r"[^ |]*\|UNK\b[^ ]*|<unk>|⁇"),
        remedy="Let the decoder copy unknown words",
    ),
    Trait(
        "alignments",
        "fields of an n-best list",
        _search(r" \|\|\| [^ ]*"),
        remedy="Give the text alone; of an n-best list, score one hypothesis for each sentence",
    ),
    Trait(
        "markup",
        "tags",
        _search(r"</?(?!unk>)[A-Za-z][^<>]*>"),
        remedy="Give plain text, one sentence a line: {command}",
        command="sed -E 's/<[^<>]*>//g'",
    ),
    Trait(
        "blanks",
        "no-break spaces, tabs or other blanks than the ASCII blank",
        _find_code(_BLANK),
        "the metric takes them for letters",
        remedy="Replace them by blanks: {command}",
        command=r"perl -CSD -pe 's/[^\S\n]/ /g'",
        matters=lambda view: view.blanks == "ascii",
    ),
    Trait(
        "invisible characters",
        "invisible characters",
        _find_code(_INVISIBLE),
        "the metric takes them for letters",
        remedy="Remove them: {command}",
        command=r"perl -CSD -pe 's/\p{Cf}//g'",
    ),
    Trait(
        "subwords",
        "subwords (BPE)",
        _search(r"[^ ]+@@(?= |$)"),
        remedy="Join them: {command}",
        command="sed -E 's/@@( |$)//g'",
    ),
    Trait(
        "pieces",
        "pieces of SentencePiece",
        _search(r"(?:^| )\u2581[^ ]*"),
        remedy="Join them (spm_decode)",
    ),
    Trait(
        "split hyphens",
        "hyphens that the tokenizer split off",
        _search(r"(?:^| )@[^ @\w]@(?= |$)"),
        remedy="Tokenize both alike (tokenizer.perl -a), or join them: {command}",
        command=r"sed -E 's/ @([^ @])@ /\1/g'",
    ),
    Trait(
        "decomposition",
        "letters and accents as separate characters (Unicode NFD)",
        _find_decomposed,
        "composed and decomposed words do not match",
        remedy="Compose them: {command}",
        command="uconv -x nfc",
        matters=lambda view: "nfkc" not in view.normalization.steps,
    ),
    Trait(
        "quotes",
        "typographic quotation marks",
        _search("[\u2018-\u201f\u00ab\u00bb\u2039\u203a]"),
        "they do not match those of ASCII",
        remedy="Write them alike on both sides (normalize-punctuation.perl of Moses)",
        matters=lambda view: "punct" not in view.normalization.steps,
    ),
    Trait(
        "full width",
        "full-width letters or punctuation",
        _search(r"[\uff01-\uff5e]+"),
        "they do not match those of ASCII",
        remedy="Write them alike on both sides (replace-unicode-punctuation.perl of Moses)",
        matters=lambda view: "nfkc" not in view.normalization.steps,
    ),
)
"""Traits that count where one of two texts has them and the other has not."""

_ENTITY = re.compile(r"&(?:apos|quot|amp|lt|gt|#[0-9]{2,5}|#x[0-9A-Fa-f]{2,5});")
_UNTOUCHED = re.compile(r"&(?:apos|#[0-9]{2,5}|#x[0-9A-Fa-f]{2,5});")
_RAW = re.compile(r"['\"&<>\[\]|]")
_READS_ENTITIES = ("13a", "tercom", "tercom-asian")
"""Tokenizers of sacrebleu that read some escapes of XML themselves."""


def find_escapes(line: str, view: TextView) -> str:
    """Return an escaped character, as ``&apos;``, that the metric takes as it is."""
    pattern = _UNTOUCHED if view.tokenizer in _READS_ENTITIES else _ENTITY
    match = pattern.search(line)
    return match[0] if match else ""


def has_raw_characters(line: str) -> bool:
    """Return whether a line has characters that Moses' tokenizer escapes."""
    return _RAW.search(_ENTITY.sub("", line)) is not None
