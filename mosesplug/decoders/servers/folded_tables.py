"""The phrase table of one sentence with sums of sparse weights (see ``folding``)."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from formats.errors import FormatError, quote
from formats.moses.decoder_flags import flag_name, group_flags
from formats.moses.ini import FeatureLine, MosesIni
from formats.moses.ini_features import UNKNOWN_WORD
from formats.text import write_atomic
from formats.weights.encoding import decode, encode
from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.servers.folded_entries import (
    FoldableEntryCheck,
    format_digit_weights,
    format_digits,
)
from mosesplug.decoders.servers.folding import (
    FoldedPhrase,
    FoldedPlace,
    Folding,
    PhraseFolder,
    UnknownWords,
)
from mosesplug.decoders.servers.sentence_tables import (
    FACTOR_DELIMITER,
    SENTENCE_TABLE,
    VOCABULARY,
    Complete,
    SentenceTables,
    TableEntries,
    list_phrases,
    list_settings,
    list_spans,
    rewrite_line,
    split_words,
    write_sentence_table,
)
from mosesplug.errors import DecoderError, UsageError
from mosesplug.templates.declaration import FUNCTIONS, read_ini_function
from mosesplug.templates.derivation import Words
from mosesplug.templates.template import PhraseTemplate

_DIGITS = ("FoldedSum1", "FoldedSum2", "FoldedSum3")
_NEUTRAL = frozenset(
    (
        *("Distortion", "KENLM", "IRSTLM", "LexicalReordering", "MAXENTLM", "NPLM", "NeuralLM"),
        *("PhrasePenalty", "RANDLM", "SRILM", UNKNOWN_WORD, "WordPenalty"),
    )
)
"""Functions that look neither at alignments, nor at other factors, nor at marks of unknown words.

Only with these, a configuration without its own sparse functions is the same model.
"""

_SPARSE_ARGUMENT = re.compile("sparse-.*")
_HIDDEN = (
    *("always-create-direct-transopt", "feature-add", "feature-overwrite", "mark-unknown"),
    *("output-unknowns", "placeholder-factor", "report-all-factors", "report-segmentation"),
    *("report-segmentation-enriched", "xml-input"),
)
_FIXED = {"output-factors": ("0",), "factor-delimiter": ("|",), "mapping": ("0 T 0", "T 0")}
_OFF = frozenset(("", "0", "false", "no"))

_NO_WORDS = b""
"""The vocabulary of source words: all are ``OTHER``."""

_MARK = re.compile(rb"\|([0-9]+)-([0-9]+)\|")
"""The mark behind the target words of a phrase: its first and last source position."""


class CannotFoldError(Exception):
    """Sparse weights cannot be folded; the message is the reason."""


@dataclass(frozen=True)
class FoldedTables(SentenceTables):
    """The text table of a configuration with sums of sparse weights.

    Attributes:
        folding: the feature functions whose sums the table holds.
        folder: computes sums and features of entries.
        phrases: the entries that it has parsed, by source phrase.
    """

    folding: Folding
    folder: PhraseFolder
    phrases: dict[bytes, FoldedPhrase]

    @classmethod
    def fold(
        cls,
        tables: SentenceTables,
        flags: Sequence[str],
        directory: Path,
        sentences: Iterable[bytes],
    ) -> FoldedTables:
        """Fold all functions that depend on one phrase pair and the source sentence.

        Args:
            tables: the tables of a configuration.
            flags: the flags of the decoder.
            directory: the decoder's current directory.
            sentences: all that will be decoded.

        Raises:
            CannotFoldError: the model would be another one, or there is nothing to fold.
        """
        ini = tables.ini
        settings = list_settings(ini, flags)
        sentences = list(sentences)
        for text in sentences:
            if FACTOR_DELIMITER in text:
                raise CannotFoldError(f"the source sentence {quote(text)} has several factors")
        table = _find_table(tables)
        lines, functions = _find_functions(ini, directory)
        for line in ini.features:
            if line in lines or line is table:
                continue
            if line.kind not in _NEUTRAL or any(map(_SPARSE_ARGUMENT.match, line.arguments)):
                raise CannotFoldError(
                    f"{line.name} ({line.kind}) depends on more than one phrase pair and the source"
                    " sentence"
                )
        if not functions:
            raise CannotFoldError("no feature function depends on one phrase pair")
        for name in _HIDDEN:
            if settings.get(name, "") not in _OFF:
                raise CannotFoldError(f"the decoder is called with {name}")
        for name, values in _FIXED.items():
            if settings.get(name, values[0]) not in values:
                raise CannotFoldError(f"{name} is {settings[name]}, not {values[0]}")
        is_dropped = settings.get("drop-unknown", "") not in _OFF
        unknown = UnknownWords(_find_penalty(ini), is_dropped)
        folding = Folding(lines, functions, unknown)
        if folding.contextual and "input-factors" in map(flag_name, dict(group_flags(flags))):
            raise CannotFoldError("the decoder is called with input-factors")
        for value in ini.section("weight"):
            if folding.folds(value.text):
                # A process prefers it to the weights that are sent.
                raise CannotFoldError(f"[weight] has the sparse weight {quote(value.text)}")
        folded = cls(
            **{name: value for name, value in vars(tables).items() if name != "entries"},
            entries=TableEntries([table.path or ""], FoldableEntryCheck),
            folding=folding,
            folder=PhraseFolder(folding),
            phrases={},
        )
        try:
            folded.expect(sentences, directory)
        except FormatError as error:
            raise CannotFoldError(str(error)) from error
        return folded

    @property
    def with_segmentation(self) -> bool:
        """True: features are computed from the phrases of a hypothesis."""
        return True

    def write_config(self, path: Path, directory: Path) -> None:
        """Write the configuration without the folded functions; as ``SentenceTables``."""
        (table,) = self.texts
        lines = list(self.ini.lines)
        for line in self.folding.lines:
            lines[line.line - 1] = b"\n"
        n_scores = len(self._tuneable)
        changes = {
            b"path": bytes(directory / table.name),
            b"name": table.name.encode(),
            b"num-features": b"%d" % (n_scores + 1),
            b"output-factor": b"0,1,2,3",
            b"tuneable-components": ",".join((*self._tuneable, "0")).encode(),
        }
        if self.folding.contextual:
            changes[b"input-factor"] = b"0,1"
            surface = b"" if self.ini.section("input-factors") else b"0\n"
            lines.append(b"\n[input-factors]\n%b1\n" % surface)
        if table.arguments.get("tuneable", "true") in _OFF:
            del changes[b"tuneable-components"]
        lines[table.line - 1] = rewrite_line(
            lines[table.line - 1], SENTENCE_TABLE, changes
        ) + b"".join(
            b"WordTranslationFeature name=%b input-factor=0 output-factor=%d simple=1"
            b" source-context=0 target-context=0 source-path=%b target-path=%b tuneable=false\n"
            % (name.encode(), factor, bytes(self._words(directory, 0)), words)
            for factor, name in enumerate(_DIGITS, 1)
            for words in [bytes(self._words(directory, 1))]
        )
        write_atomic(path, b"".join(lines))
        for place, content in enumerate((_NO_WORDS, format_digits())):
            words_file = path.parent / self._words(directory, place)
            words_file.parent.mkdir(parents=True, exist_ok=True)
            words_file.write_bytes(content)

    def convert_weights(self, weights: ModelWeights) -> ModelWeights:
        """Add the weight of the additional score, and leave out what is folded."""
        (table,) = self.texts
        groups = tuple(
            WeightGroup(group.name, (*group.values, self.folding.scale))
            if group.name == table.name
            else group
            for group in weights.groups
        )
        sparse = {
            name: weight
            for name, weight in weights.sparse.items()
            if weight and not self.folding.folds(name)
        }
        return replace(weights, groups=groups, sparse=sparse)

    def explain_unfolded(self, weights: ModelWeights) -> str | None:
        """Name the first sparse weight of no folded function; as ``SentenceTables``."""
        if not weights.sparse:
            return None
        return (
            f"{min(weights.sparse)} belongs to no function that depends on one phrase pair and the"
            " source sentence only"
        )

    def format_constant_weights(self) -> bytes:
        """Return the weights of the functions that add up digits."""
        return format_digit_weights(_DIGITS)

    def write(
        self, text: bytes, directory: Path, current: Path, weights: Mapping[str, float]
    ) -> None:
        """Write the table of one sentence with its sums; as ``SentenceTables``.

        Raises:
            DecoderError: a sum is too large.
        """
        (table,) = self.texts
        data = self.folder.write(self._fold(text, current), _decode_words(text), weights)
        write_sentence_table(directory, table, data)

    def mark_text(self, text: bytes) -> bytes:
        """Return a sentence with the positions of its words, if contexts need them."""
        return b" ".join(self._mark(0, split_words(text)))

    def complete(self, text: bytes) -> Complete:
        """Remove the marks of phrases from hypotheses, and compute their features."""
        count = cache(partial(self.folder.count, source=_decode_words(text)))
        return partial(self._complete, split_words(text), count)

    def _complete(
        self,
        source: Sequence[bytes],
        count: Callable[[int, FoldedPhrase, int], tuple[tuple[int, float], ...]],
        hypothesis: bytes,
        features: bytes,
    ) -> tuple[bytes, bytes]:
        words: list[bytes] = []
        phrase_words: list[bytes] = []
        counts: list[tuple[tuple[int, float], ...]] = []
        dropped = set(range(len(source)))
        for word in split_words(hypothesis):
            mark = _MARK.fullmatch(word)
            if mark is None:
                phrase_words.append(word)
                continue
            first, last = int(mark[1]), int(mark[2]) + 1
            counts.append(count(first, *self._find_row(source[first:last], phrase_words)))
            dropped.difference_update(range(first, last))
            words += phrase_words
            phrase_words = []
        if phrase_words:
            raise DecoderError(
                "the decoder's server gave a hypothesis without its phrases: decode by a process"
                " for each batch ({--online-decoder process})"
            )
        # Phrases without target words have no mark; only unknown words have such.
        counts += (count(at, *self._find_row(source[at : at + 1], ())) for at in sorted(dropped))
        return b" ".join(words), features.rstrip(b" ") + self.folder.format_features(counts)

    def sample_weights(self, sentences: Iterable[bytes], current: Path) -> dict[str, float]:
        """Return a weight for each feature of ``list_features``, to compare decoders with.

        Their sums are exact in single precision, in any order.
        """
        names = self.list_features(sentences, current)
        return {name: (zlib.crc32(encode(name)) % 65 - 32) / 64 for name in names}

    def list_features(self, sentences: Iterable[bytes], current: Path) -> Iterator[str]:
        """Yield the sparse features that hypotheses of sentences can have.

        Features with source contexts may come more than once.
        """
        sentences = list(sentences)
        self.expect(sentences, current)
        n_listed = 0
        for text in sentences:
            places = self._fold(text, current)
            names = self.folder.names
            yield from names[n_listed:]
            n_listed = len(names)
            yield from self.folder.list_contexts(places, _decode_words(text))

    def _fold(self, text: bytes, current: Path) -> list[FoldedPlace]:
        """Return the entries of a sentence; without contexts, each phrase has one place."""
        self.expect([text], current)
        words = split_words(text)
        lines = self.entries.of(0, list_phrases(text, self.longest))
        places: dict[bytes, FoldedPlace] = {}
        for start, end in list_spans(len(words), self.longest):
            text = b" ".join(words[start:end])
            if end - start > 1 and text not in lines:
                continue
            phrase = self.phrases.get(text)
            if phrase is None:
                phrase = self.phrases[text] = (
                    self.folder.fold(lines[text])
                    if text in lines
                    else self.folder.fold_unknown(text, len(self._tuneable))
                )
            source = b" ".join(self._mark(start, words[start:end]))
            places.setdefault(source, FoldedPlace(start, source, phrase))
        return list(places.values())

    def _mark(self, start: int, words: Sequence[bytes]) -> Iterable[bytes]:
        """Yield words with their positions as second factors, if contexts need them."""
        if not self.folding.contextual:
            return words
        return (b"%b|%d" % (word, position) for position, word in enumerate(words, start))

    def _find_row(
        self, source: Sequence[bytes], target: Sequence[bytes]
    ) -> tuple[FoldedPhrase, int]:
        phrase = self.phrases.get(b" ".join(source))
        rows = () if phrase is None else phrase.rows.get(b" ".join(target), ())
        if phrase is None or not rows:
            pair = b" ||| ".join((b" ".join(source), b" ".join(target)))
            raise DecoderError(
                f"the decoder's server used {quote(pair)}, which its phrase table does not have:"
                " decode by a process for each batch ({--online-decoder process})"
            )
        return phrase, rows[0]

    @property
    def _tuneable(self) -> tuple[str, ...]:
        """For each score of the table, whether its weight is tuned, as in the ini."""
        (table,) = self.texts
        count = int(table.arguments.get("num-features", "1"))
        written = table.arguments.get("tuneable-components")
        return ("1",) * count if written is None else tuple(written.split(","))

    def _words(self, directory: Path, place: int) -> Path:
        """The file of source words, or of target words, of the functions that add up."""
        return directory / _DIGITS[place] / VOCABULARY

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value for name, value in vars(self).items() if name not in ("folder", "phrases")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, folder=PhraseFolder(state["folding"]), phrases={})


def _decode_words(text: bytes) -> Words:
    return tuple(map(decode, split_words(text)))


def _find_table(tables: SentenceTables) -> FeatureLine:
    """Return the only phrase table."""
    others = [line for line in tables.ini.features if line.kind.startswith("PhraseDictionary")]
    if len(tables.texts) != 1 or len(others) != 1:
        raise CannotFoldError("the model has another phrase table than one text table")
    table = tables.texts[0]
    if table.arguments.get("output-factor", "0") != "0":
        raise CannotFoldError("the phrase table has several factors")
    return table


def _find_functions(
    ini: MosesIni, directory: Path
) -> tuple[tuple[FeatureLine, ...], tuple[PhraseTemplate, ...]]:
    """Return the functions that can be folded, and how to compute them."""
    lines: list[FeatureLine] = []
    functions: list[PhraseTemplate] = []
    for line in ini.features:
        text = ini.lines[line.line - 1].partition(b"#")[0].decode(errors="surrogateescape")
        try:
            template = read_ini_function(f"{text} name={line.name}", directory)
        except UsageError as error:
            if line.kind in FUNCTIONS:
                raise CannotFoldError(str(error)) from error
            continue
        if isinstance(template, PhraseTemplate) and template.scope != "target":
            lines.append(line)
            functions += template.split_scopes()
    return tuple(lines), tuple(functions)


def _find_penalty(ini: MosesIni) -> float:
    """Return the weight of the penalty of unknown words.

    Raises:
        CannotFoldError: it is tuned, so that its values must be in the lists.
    """
    for line in ini.features:
        if line.kind == UNKNOWN_WORD:
            if line.arguments.get("tuneable", "false") not in _OFF:
                raise CannotFoldError(f"{line.name} is tuned")
            (weight, *_) = (*ini.weights.get(line.name, ()), 1.0)
            return weight
    raise CannotFoldError(f"the model has no {UNKNOWN_WORD}")
