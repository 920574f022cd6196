"""Check data before tuning: lengths, repetitions, mismatches, unknown words."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Self

import numpy as np

from formats.errors import FormatError, quote
from formats.nbest.block import NBestList
from formats.text import StrPath, open_text
from mosesplug.errors import Message, Spelling, count_noun
from mosesplug.learning.lists.merging import load_lists
from mosesplug.metrics import Metric
from mosesplug.results.render.record import Count, Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block, TextTable
from mosesplug.tuning.text_signs.comparison import compare_styles, find_source_signs
from mosesplug.tuning.text_signs.view import views_of_signatures
from mosesplug.tuning.warning_signs import WarningSign, find_list_signs
from mosesplug.tuning_set import TuningSet

_LONG = 100
"""Words of a sentence that is long: decoding takes long, and the metric sees little of it."""

_REPEATED = 0.1
_MISALIGNED = 3.0
"""Length of a translation relative to the usual, from which on it may be of another line."""

_FEWEST_SENTENCES = 200
_SENTENCES_PER_FEATURE = 10
_UNKNOWN = 0.1
_TRAINED_ON = 0.05
_SHORTEST = 4
"""Shorter sentences are in all texts, and say nothing of an overlap."""

_SHOWN = 5


@dataclass(frozen=True)
class TextStatistics:
    """The size of one text.

    Attributes:
        mean: words of a line that is not empty, on average.
        repeated: lines that stand in the text before.
    """

    name: Annotated[str, Shown(label="text", is_text=True)]
    lines: Count
    words: Count
    mean: Annotated[float, Shown(".1f", "a line")]
    longest: Count
    empty: Count
    repeated: Count
    distinct: Annotated[int, Shown(label="distinct words")]

    @classmethod
    def of_lines(cls, name: str, lines: Sequence[bytes]) -> TextStatistics:
        """Count the words of lines."""
        split = [line.split() for line in lines]
        counts = [len(words) for words in split]
        filled = [tuple(words) for words in split if words]
        return cls(
            name,
            len(lines),
            sum(counts),
            sum(counts) / max(len(filled), 1),
            max(counts, default=0),
            len(lines) - len(filled),
            len(filled) - len({*filled}),
            len({word for words in split for word in words}),
        )


@dataclass(frozen=True)
class NamedWarning:
    """A sign that something is wrong with data."""

    name: Annotated[str, Shown(label="warning", is_text=True)]
    message: Text


@dataclass(frozen=True)
class DataCheck:
    """Facts and warnings about data before tuning.

    Attributes:
        facts: other figures by name: of lists, unknown words and overlaps.
        signs: what should be mended or known, the most important first.
    """

    texts: tuple[TextStatistics, ...]
    facts: Mapping[str, float]
    signs: tuple[WarningSign, ...]

    JSON_KEYS: ClassVar = "texts facts warnings=named_warnings"

    def spell(self, spelling: Spelling) -> Self:
        """Return the same with another spelling of the options that warnings name."""
        signs = (replace(sign, message=Message(sign.message, spelling)) for sign in self.signs)
        return replace(self, signs=tuple(signs))

    @property
    def named_warnings(self) -> list[NamedWarning]:
        """The signs by name."""
        return [NamedWarning(sign.name, sign.message) for sign in self.signs]

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield the tables of texts, other figures and warnings that have rows."""
        facts = [(name, f"{value:.4g}") for name, value in self.facts.items()]
        yield tabulate(TextStatistics, self.texts)
        if facts:
            yield from [""] if medium.is_text else []
            yield TextTable([("figure", "value"), *facts], left=1)
        if self.signs:
            yield from [""] if medium.is_text else []
            yield tabulate(NamedWarning, self.named_warnings)
        elif medium.layout in ("text", "html"):
            yield "\nno warnings"


@dataclass
class _Findings:
    facts: dict[str, float] = field(default_factory=dict)
    signs: list[WarningSign] = field(default_factory=list)

    def warn(self, name: str, message: str) -> None:
        self.signs.append(WarningSign(name, message))


def check_data(
    source: Sequence[bytes],
    references: Sequence[Sequence[bytes]],
    metric: Metric,
    *,
    nbest: Sequence[StrPath | NBestList] = (),
    phrase_table: StrPath | None = None,
    train: Sequence[bytes] | None = None,
    test: Sequence[bytes] | None = None,
) -> DataCheck:
    """Check a tuning set, and what a system is tuned with.

    Args:
        references: its translations, ``[reference][line]``.
        nbest: n-best lists of the source: files, or lists that have been read.

    Raises:
        FormatError: a file cannot be read.
        DataError: the lists do not fit.
    """
    findings = _Findings()
    texts = [TextStatistics.of_lines("source", source)]
    several = len(references) > 1
    names = [f"reference {n}" if several else "reference" for n in range(len(references))]
    named = zip(names, references, strict=True)
    texts += [TextStatistics.of_lines(name, lines) for name, lines in named]
    findings.signs += find_source_signs(source, references)
    _check_lengths(findings, texts)
    for name, translations in zip(names, references, strict=True):
        _check_alignment(findings, source, translations, name)
        if not nbest:  # else the lists tell more
            marks = compare_styles(
                source, "source sentences", translations, f"{name} lines", same_language=False
            )
            findings.signs += marks
    if nbest:
        lists = load_lists(nbest, references, metric)
        findings.signs += [WarningSign("texts", note) for note in lists.notes]
        _check_lists(findings, lists.tuning_set)
    if phrase_table is not None:
        _check_phrases(findings, source, references, phrase_table)
    views = views_of_signatures([metric.signature()])
    for other, what in ((train, "training text"), (test, "test set")):
        if other is not None:
            texts.append(TextStatistics.of_lines(what, other))
            _check_overlap(findings, source, other, what)
            findings.signs += compare_styles(
                source, "source sentences", other, f"{what} lines", views
            )
    return DataCheck(tuple(texts), findings.facts, tuple(findings.signs))


def _check_lengths(findings: _Findings, texts: Sequence[TextStatistics]) -> None:
    source = texts[0]
    if source.lines < _FEWEST_SENTENCES:
        findings.warn(
            "few sentences",
            f"{count_noun(source.lines, 'sentence')}: too few to learn weights that hold for other"
            " text. Tuning sets have 1,000 to 3,000",
        )
    for text in texts:
        if text.empty and text is source:
            findings.warn(
                "empty lines",
                f"{text.empty} of {text.lines} lines of the {text.name} are empty. Remove these"
                " sentences from all files",
            )
        if text.repeated > _REPEATED * text.lines:
            findings.warn(
                "repeated lines",
                f"{text.repeated} of {text.lines} lines of the {text.name} stand in it before: they"
                " count several times. Remove repeated sentences",
            )
    if source.longest > _LONG:
        findings.warn(
            "long lines",
            f"the longest source sentence has {source.longest} words: see that each line is one"
            f" sentence, and remove those of more than {_LONG} words",
        )


def _check_alignment(
    findings: _Findings, source: Sequence[bytes], target: Sequence[bytes], name: str
) -> None:
    """Find translations whose length is not that of their line."""
    lengths = np.array(
        [(len(a), len(b)) for a, b in zip(source, target, strict=True) if a.strip() and b.strip()],
        dtype=np.float64,
    ).reshape(-1, 2)
    if len(lengths) < _SHOWN:
        return
    usual = statistics.median((lengths[:, 1] / lengths[:, 0]).tolist())
    strange = [
        number
        for number, (a, b) in enumerate(zip(source, target, strict=True), start=1)
        if a.strip() and b.strip() and _is_other_length(len(a) * usual, len(b))
    ]
    findings.facts[f"length of {name} by source"] = usual
    findings.facts[f"lines of {name} of another length"] = len(strange)
    if np.ptp(lengths[:, 0]) and np.ptp(lengths[:, 1]) and len(lengths) >= 50:
        correlation = float(np.corrcoef(np.log(lengths).T)[0, 1])
        if correlation < 0.4:
            findings.warn(
                "alignment",
                f"the lengths of source and {name} have a correlation of {correlation:.2f}: line N"
                " of one is not the translation of line N of the other. See whether a line is"
                " missing in one file",
            )
            return
    if strange:
        findings.warn(
            "lengths",
            f"{len(strange)} of {len(source)} lines of the {name} are {_MISALIGNED:g} times longer"
            f" or shorter than usual, such as {', '.join(map(str, strange[:_SHOWN]))}: see whether"
            " they are the translation",
        )


def _is_other_length(expected: float, length: int) -> bool:
    few, many = sorted([expected, length])
    return many > _MISALIGNED * few and many - few > 40


def _check_lists(findings: _Findings, lists: TuningSet) -> None:
    filled = int(np.count_nonzero(np.diff(lists.offsets)))
    n_dense, n_sparse = lists.space.n_dense, lists.space.n_sparse
    findings.facts |= {
        "sentences with hypotheses": filled,
        "hypotheses of a sentence": lists.n_hyps / max(filled, 1),
        "dense features": n_dense,
        "sparse features": n_sparse,
    }
    if filled < lists.n_sentences:
        findings.warn(
            "missing lists",
            f"{lists.n_sentences - filled} of {lists.n_sentences} sentences have no hypotheses."
            " Check that the lists are complete and of this source",
        )
    if filled < _SENTENCES_PER_FEATURE * n_dense:
        findings.warn(
            "many features",
            f"{filled} sentences for {n_dense} dense features: weights will fit these sentences"
            " and no others. Give more sentences, or tune fewer features ({--active})",
        )
    if n_sparse > filled:
        findings.warn(
            "many features",
            f"{filled} sentences for {n_sparse} sparse features: hold sentences out ({{--heldout}})"
            " and choose an algorithm that regularizes (kbmira, margin, xbleu)",
        )
    findings.signs += find_list_signs(lists)


def _check_phrases(
    findings: _Findings,
    source: Sequence[bytes],
    references: Sequence[Sequence[bytes]],
    path: StrPath,
) -> None:
    """Find words that the phrase table cannot translate or produce."""
    words, produced = set[bytes](), set[bytes]()
    samples: dict[bytes, None] = {}
    phrases: dict[bytes, None] = {}
    for phrase, translation in _read_phrases(path):
        words.update(phrase.split())
        produced.update(translation.split())
        if len(samples) < _MOST_SAMPLES:
            samples[phrase] = phrases[translation] = None
    for name, key, texts, known in (
        ("source", "unknown words of source", [source], words),
        ("references", "unreachable words of references", references, produced),
    ):
        bag = Counter(word for lines in texts for line in lines for word in line.split())
        unknown = sum(count for word, count in bag.items() if word not in known)
        share = findings.facts[key] = unknown / max(bag.total(), 1)
        if share > _UNKNOWN:
            common = [word for word, _ in bag.most_common() if word not in known][:_SHOWN]
            findings.warn(
                "unknown words",
                f"{share:.1%} of the words of the {name} are not in the phrase table, such as"
                f" {', '.join(map(quote, common))}: see that both are tokenized and cased alike",
            )
    findings.signs += compare_styles(source, "source sentences", [*samples], "phrases of the table")
    for lines in references:
        findings.signs += compare_styles(
            lines, "references", [*phrases], "translations of the table"
        )


_MOST_SAMPLES = 20_000
"""Phrases whose spelling is compared; the words of all are known."""


def _read_phrases(path: StrPath) -> Iterator[tuple[bytes, bytes]]:
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            fields = line.split(b" ||| ")
            if len(fields) < 3:
                raise FormatError(
                    "the line is not `source ||| target ||| scores`",
                    path=path,
                    line=number,
                    remedy="Give a phrase table of Moses as text, compressed or not",
                )
            yield fields[0], fields[1]


def _check_overlap(
    findings: _Findings, source: Sequence[bytes], other: Sequence[bytes], what: str
) -> None:
    known = {tuple(line.split()) for line in other}
    long = [tuple(line.split()) for line in source]
    long = [words for words in long if len(words) >= _SHORTEST]
    shared = sum(words in known for words in long)
    share = findings.facts[f"source sentences in {what}"] = shared / max(len(long), 1)
    if shared and (what == "test set" or share > _TRAINED_ON):
        findings.warn(
            "overlap",
            f"{shared} of {len(long)} source sentences stand in the {what}: scores and weights will"
            " be optimistic. Remove them from one of the two",
        )
