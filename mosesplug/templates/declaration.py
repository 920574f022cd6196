"""Declarations of templates: a TOML file, or the feature functions of a moses.ini.

A table of the file is a template. Its name begins the names of the features; its keys are those of
Moses' feature functions.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from os import fspath
from pathlib import Path
from typing import Any

from formats.errors import FormatError
from formats.moses.ini_features import FALSE_WORDS, TRUE_WORDS
from formats.text import StrPath, open_text, read_bytes
from mosesplug.errors import UsageError, suggest
from mosesplug.options import Opt, list_options
from mosesplug.templates.derivation import AlignedDerivation
from mosesplug.templates.functions import (
    PhraseLengthFeature,
    PhrasePairFeature,
    ShapeFeature,
    SourceWordDeletionFeature,
    TargetBigramFeature,
    TargetNgramFeature,
    TargetWordInsertionFeature,
    WordTranslationFeature,
)
from mosesplug.templates.template import Counts, Need, PhraseTemplate, Template

__all__ = ["FUNCTIONS", "Templates", "read_ini_function", "read_templates"]

FUNCTIONS: Mapping[str, type[Template]] = {
    cls.__name__: cls
    for cls in (
        WordTranslationFeature,
        TargetWordInsertionFeature,
        SourceWordDeletionFeature,
        PhrasePairFeature,
        PhraseLengthFeature,
        ShapeFeature,
        TargetBigramFeature,
        TargetNgramFeature,
    )
}
"""Templates by the names of Moses' feature functions."""

_FUNCTION = "function"
_MOST_FREQUENT = Opt(
    "Keep only the most frequent words of each file",
    name="most-frequent",
    kind="integer",
    minimum=1,
)
_FIXED = {"domain-trigger": False, "tuneable": True}
"""Flags of Moses' functions that templates support with their defaults only."""

_IGNORED = ("filterable", "texttype")
"""Settings that Moses reads, but does not use."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


@dataclass(frozen=True)
class Templates:
    """The templates of a declaration.

    Attributes:
        path: the declaration, for messages.
    """

    path: str
    templates: tuple[Template, ...]

    @property
    def needs(self) -> frozenset[Need]:
        """What n-best lists must contain besides texts."""
        return frozenset().union(*(template.needs for template in self.templates))

    @property
    def local(self) -> tuple[PhraseTemplate, ...]:
        """The templates that depend on one phrase pair only."""
        return tuple(
            template
            for template in self.templates
            if isinstance(template, PhraseTemplate) and template.scope == "phrase"
        )

    @property
    def digest(self) -> str:
        """Identifies functions, settings and vocabularies, wherever their files are."""
        declared = [
            (type(template).__name__, [_describe(value) for value in vars(template).values()])
            for template in self.templates
        ]
        return sha256(repr(declared).encode(errors="surrogateescape")).hexdigest()[:16]

    def check_sources(self, sentences: Iterable[bytes], place: str) -> None:
        """Check that the source has a word of each vocabulary of source words.

        Args:
            sentences: all source sentences.
            place: where they are, for messages.

        Raises:
            UsageError: it has none.
        """
        vocabularies = [
            (template.name, template.source_vocabulary)
            for template in self.templates
            if template.source_vocabulary is not None
        ]
        if not vocabularies:
            return
        words = {
            text.decode("utf-8", "surrogateescape")
            for sentence in sentences
            for word in sentence.split()
            for text in (word, word.partition(b"|")[0])  # Moses compares the first factor
        }
        for name, vocabulary in vocabularies:
            if words and vocabulary.isdisjoint(words):
                raise UsageError(
                    f"{self.path}: [{name}]: {place} has no word of its vocabulary of source words,"
                    f" such as {min(vocabulary)}. Give words of the source language"
                )

    def count(self, derivation: AlignedDerivation) -> Counts:
        """Return the features of a derivation."""
        counts: Counts = {}
        for template in self.templates:
            counts.update(template.count(derivation))
        return counts


def _describe(value: object) -> object:
    """Return a setting of a template in an order that does not change."""
    return sorted(value) if isinstance(value, frozenset) else value


def read_templates(path: StrPath) -> Templates:
    """Read a declaration.

    Raises:
        UsageError: it is not TOML, or declares an unknown function or key.
        FormatError: it or a vocabulary cannot be read, or is empty.
    """
    name = fspath(path)
    try:
        document = tomllib.loads(read_bytes(path).decode(errors="surrogateescape"))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name}: not valid TOML: {error}") from error
    return make_templates(document, name, Path(path).parent)


def make_templates(tables: Mapping[str, Any], path: str, folder: Path) -> Templates:
    """Make the templates of a parsed declaration.

    Args:
        tables: settings by the names of the templates.
        path: where they are declared, for messages.
        folder: what paths of vocabularies are relative to.

    Raises:
        UsageError, FormatError: as ``read_templates``.
    """
    if not tables:
        raise UsageError(f"{path}: no template is declared. Add one, such as {_example()}")
    return Templates(
        path, tuple(_make_template(name, table, path, folder) for name, table in tables.items())
    )


def read_ini_function(line: str, folder: Path) -> Template:
    """Return the template of a line of the section ``[feature]`` of a moses.ini.

    Args:
        line: such as ``WordTranslationFeature name=WT simple=1 source-context=0``.
        folder: what paths are relative to.

    Raises:
        UsageError: no template computes this function, or its settings.
        FormatError: a vocabulary cannot be read, or is empty.
    """
    function, *arguments = line.split()
    place = f"[feature] {function}"
    texts = dict(argument.partition("=")[::2] for argument in arguments)
    name = texts.pop("name", f"{function}0")
    known = _list_keys(_find_function(function, place))
    for key in ("factor", "input-factor", "output-factor"):
        if texts.pop(key, "0") != "0":
            raise UsageError(f"{place} {key}: templates support factor 0 only")
    for key, default in _FIXED.items():
        if key in texts and _parse_flag(text := texts.pop(key)) is not default:
            expected = "true" if default else "false"
            raise UsageError(f"{place} {key}={text}: templates support {key}={expected} only")
    for key in _IGNORED:
        texts.pop(key, None)
    if _parse_flag(texts.pop("unrestricted", "false")):
        texts.pop("path", None)  # as Moses does, which then does not use the vocabulary
    values = {
        key: _parse_ini_value(text, known[key]) if key in known else text
        for key, text in texts.items()
    }
    values = {key: value for key, value in values.items() if value != "*"}
    return _make_template(name, {_FUNCTION: function, **values}, place, folder)


def _parse_ini_value(text: str, option: Opt) -> Any:
    if option.kind == "flag" and (value := _parse_flag(text)) is not None:
        return value
    return int(text) if option.kind == "integer" and text.isdigit() else text


def _parse_flag(text: str) -> bool | None:
    """Return the value of a flag; None if Moses does not accept the word either."""
    word = text.lower()
    return word in TRUE_WORDS if word in TRUE_WORDS | FALSE_WORDS else None


def _make_template(name: str, table: Any, path: str, folder: Path) -> Template:
    place = f"{path}: [{name}]"
    if not isinstance(table, Mapping):
        raise UsageError(f"{path}: {name} is not a table. Declare a template: {_example()}")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{place}: the name of a template must be a letter, followed by letters, digits or "
            "hyphens. Rename the template"
        )
    if _FUNCTION not in table:
        raise UsageError(
            f"{place}: the key function is missing. Give one of {', '.join(FUNCTIONS)}"
        )
    cls = _find_function(table[_FUNCTION], place)
    known = _list_keys(cls)
    paths = [key for key, option in known.items() if option.kind == "text"]
    keys = [*known, *([_MOST_FREQUENT.name] if paths else [])]
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in (_FUNCTION, *keys):
            raise UsageError(
                f"{place}: unknown key {key}; {cls.__name__} has {', '.join(keys)}"
                f"{suggest(key, keys)}"
            )
        if key != _FUNCTION:
            values[key] = _check_value(known.get(key, _MOST_FREQUENT), value, f"{place} {key}")
    limit = values.pop(_MOST_FREQUENT.name, None)
    if limit is not None and not any(key in values for key in paths):
        raise UsageError(f"{place} {_MOST_FREQUENT.name}: requires {' or '.join(paths)}")
    for key in paths:
        if key in values:
            values[key] = _read_vocabulary(folder / values[key], limit, f"{place} {key}")
    template = cls(name, **{known[key].path[0]: value for key, value in values.items()})
    _check_use(template, place)
    return template


def _find_function(function: object, place: str) -> type[Template]:
    if function not in FUNCTIONS:
        raise UsageError(
            f"{place}: unknown function {function}; known: {', '.join(FUNCTIONS)}"
            f"{suggest(str(function), FUNCTIONS)}"
        )
    return FUNCTIONS[str(function)]


def _list_keys(cls: type) -> dict[str, Opt]:
    """Return the settings of a template by their keys."""
    return {option.name: option for option in list_options(cls)}


def _check_value(option: Opt, value: Any, place: str) -> Any:
    expected = {"flag": bool, "integer": int}.get(option.kind, str)
    if type(value) is not expected:
        words = {bool: "true or false", int: "an integer", str: "the name of a file"}
        raise UsageError(f"{place}: expected {words[expected]}, not {value!r}")
    if isinstance(value, int) and option.minimum is not None and value < option.minimum:
        raise UsageError(
            f"{place}: expected an integer of at least {option.minimum:g}, not {value}"
        )
    return value


def _check_use(template: Template, place: str) -> None:
    """Check that a template has features, and that its settings matter."""
    match template:
        case WordTranslationFeature() | PhrasePairFeature():
            has_target = isinstance(template, WordTranslationFeature) and template.target_context
            has_context = template.source_context or has_target
            contexts = "source-context"
            if isinstance(template, WordTranslationFeature):
                contexts += " or target-context"
            if not (template.simple or has_context):
                raise UsageError(
                    f"{place}: with simple = false and no context, the template has no features. "
                    f"Set {contexts} to true"
                )
            if isinstance(template, PhrasePairFeature):
                if template.words is not None and not has_context:
                    raise UsageError(
                        f"{place} path: restricts contexts only, so it requires source-context"
                    )
            elif template.window and not has_context:
                raise UsageError(f"{place} window: requires source-context or target-context")
        case ShapeFeature():
            if not (template.of_words or template.of_alignment):
                raise UsageError(f"{place}: set words or alignment to true")


def _read_vocabulary(path: Path, limit: int | None, place: str) -> frozenset[str]:
    """Return the words of a file, or the most frequent, in order of appearance.

    Raises:
        UsageError: there is no such file.
        FormatError: the file cannot be read, or has no words.
    """
    counts: Counter[bytes] = Counter()
    if not path.exists():
        raise UsageError(f"{place}: {path}: No such file or directory. Check the name")
    with open_text(path) as file:
        for line in file:
            counts.update(line.split())
    if not counts:
        raise FormatError(
            f"the file has no words, so {place} would make all words OTHER",
            path=path,
            remedy="Give a list of words, or a text with most-frequent",
        )
    return frozenset(
        word.decode("utf-8", "surrogateescape") for word, _ in counts.most_common(limit)
    )


def _example() -> str:
    return '[WT] with function = "WordTranslationFeature"'
