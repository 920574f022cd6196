"""Read ``moses.ini`` (version 2) into sections, and write it with new weights.

``with_weights`` replaces numbers in place and keeps every other byte, so that two configurations
differ only in their weights. ``mert-moses.pl`` moves ``[weight]`` and every section that
``--decoder-flags`` sets to the end of the file, and loses comments, sparse weights and switches
without a value there.

Moses parses the file as follows: ``#`` begins a comment anywhere in a line, ``[name]`` begins a
section, and each other nonempty line is one value of it; sections of equal name are joined.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path

from formats.decimals import parse_number
from formats.errors import FormatError, quote
from formats.text import read_bytes
from formats.weights.encoding import decode, encode
from formats.weights.files import ShowWeights, format_weight

_OLD_SECTION = re.compile(
    r"weight-(?!(file|add|overwrite)$).*"
    r"|(ttable|lmodel|slmodel|distortion|generation|global-lexical)-file"
)
_MOST_BYTES = 1 << 26
_SECTION = re.compile(rb"\[([^\]]*)\]?")
_WORD = re.compile(r"\S+", re.ASCII)  # a no-break space is part of a word, as it is for Moses


@dataclass(frozen=True)
class IniValue:
    """One value of a section: its stripped text without comment, and its line."""

    section: str
    text: str
    line: int


@dataclass(frozen=True)
class FeatureLine:
    """One line of ``[feature]``.

    Attributes:
        kind: the feature function, ``PhraseDictionaryMemory``.
        name: the name of its weights; by default the kind and a number from 0.
        arguments: all other ``key=value`` pairs, such as ``num-features`` and ``path``.
    """

    kind: str
    name: str
    arguments: Mapping[str, str]
    line: int

    @property
    def path(self) -> str | None:
        """The model file, if the feature has one."""
        return self.arguments.get("path")


@dataclass(frozen=True)
class MosesIni:
    """A configuration.

    Attributes:
        lines: all of its bytes, line by line.
        values: the values of all sections, in file order.
        sections: line of each section's header, in the order of their first appearance.
    """

    path: str
    lines: tuple[bytes, ...]
    values: tuple[IniValue, ...]
    sections: Mapping[str, int]

    def section(self, name: str) -> tuple[IniValue, ...]:
        """Return the values of one section; empty if there is no such section."""
        return tuple(value for value in self.values if value.section == name)

    @cached_property
    def features(self) -> tuple[FeatureLine, ...]:
        """The feature functions, in file order.

        Raises:
            FormatError: a line does not have the form ``Kind key=value key=value``, or two features
                share a name.
        """
        features: list[FeatureLine] = []
        unnamed: dict[str, int] = {}
        for value in self.section("feature"):
            feature = self._feature(value, unnamed)
            if any(feature.name == other.name for other in features):
                raise self._error(f"two features are called {feature.name}", value, "Rename one")
            features.append(feature)
        return tuple(features)

    @cached_property
    def weights(self) -> Mapping[str, tuple[float, ...]]:
        """The weights by feature in ``[weight]``; a later line replaces an earlier one."""
        weights: dict[str, tuple[float, ...]] = {}
        for value in self.section("weight"):
            name, *tokens = _WORD.findall(value.text)
            numbers = [parse_number(encode(token)) for token in tokens]
            if not name.endswith("=") or not numbers or any(map(math.isnan, numbers)):
                raise self._error(
                    f"{quote(value.text)} is not a weight",
                    value,
                    "A line has the form: Name= value value",
                )
            weights[name[:-1]] = tuple(numbers)
        return weights

    def _feature(self, value: IniValue, unnamed: dict[str, int]) -> FeatureLine:
        kind, *words = _WORD.findall(value.text)
        arguments: dict[str, str] = {}
        for word in words:
            key, equals, text = word.partition("=")
            if not equals or key in arguments:
                fault = "appears twice" if equals else "is not key=value"
                remedy = "A line has the form: Kind key=value"
                raise self._error(f"{quote(word)} {fault}", value, remedy)
            arguments[key] = text
        name = arguments.pop("name", "")
        if not name:
            name = f"{kind}{unnamed.get(kind, 0)}"
            unnamed[kind] = unnamed.get(kind, 0) + 1
        return FeatureLine(kind, name, arguments, value.line)

    def _error(self, message: str, value: IniValue, remedy: str) -> FormatError:
        return FormatError(message, path=self.path, line=value.line, remedy=remedy)


def read_moses_ini(path: str | PathLike[str]) -> MosesIni:
    """Read a configuration; errors as for ``parse_moses_ini``."""
    text = read_bytes(path, most=_MOST_BYTES, what="a configuration")
    return parse_moses_ini(text, path)


def parse_moses_ini(data: bytes, path: str | PathLike[str]) -> MosesIni:
    """Parse the sections and values of a configuration.

    Raises:
        FormatError: a value precedes the first section, there is no section, or the file has the
            format of 2013 and before.
    """
    lines = tuple(io.BytesIO(data))
    values: list[IniValue] = []
    sections: dict[str, int] = {}
    section = None
    for number, line in enumerate(lines, start=1):
        text = line.partition(b"#")[0].strip()
        if section_match := _SECTION.match(text):
            section = decode(section_match[1])
            sections.setdefault(section, number)
        elif text and section is None:
            raise FormatError(
                f"{quote(text)} precedes the first [section]",
                path=path,
                line=number,
                remedy="Check that this is a moses.ini",
            )
        elif text and section is not None:
            values.append(IniValue(section, decode(text), number))
    if not sections:
        remedy = "Check that this is a moses.ini"
        raise FormatError("the file has no [section]", path=path, remedy=remedy)
    for name, number in sections.items():
        if _OLD_SECTION.fullmatch(name):
            raise FormatError(
                f"[{name}] belongs to the old format of moses.ini",
                path=path,
                line=number,
                remedy="Convert the file with Moses' scripts/training/convert-moses-ini-to-v2.perl",
            )
    return MosesIni(fspath(path), lines, tuple(values), sections)


def find_missing_models(ini: MosesIni) -> tuple[IniValue, ...]:
    """Return the model files that do not exist.

    Their names may be prefixes of real names, and relative ones count from the folder of the
    configuration.
    """
    folder = Path(ini.path).parent
    return tuple(
        IniValue("feature", feature.path, feature.line)
        for feature in ini.features
        if feature.path is not None and not list_model_files(folder / feature.path)
    )


def with_absolute_paths(ini: MosesIni) -> bytes:
    """Return the text of the configuration with absolute names of files.

    Relative names of existing files, or prefixes of such, count from the folder of the
    configuration. Moses itself looks for them in its current directory. Every other byte is kept.
    """
    folder = Path(ini.path).absolute().parent
    lines = list(ini.lines)

    def resolve(match: re.Match[bytes]) -> bytes:
        path = folder / decode(match[2])
        return match[1] + encode(str(path)) if list_model_files(path) else match[0]

    for value in ini.section("feature"):
        content, hash_sign, comment = lines[value.line - 1].partition(b"#")
        named = re.sub(rb"(?<=\s)([\w-]*(?:path|file)=)([^/\s]\S*)", resolve, content)
        lines[value.line - 1] = named + hash_sign + comment
    for value in ini.section("weight-file"):
        content, hash_sign, comment = lines[value.line - 1].partition(b"#")
        named = re.sub(rb"()([^/\s]\S*)", resolve, content)
        lines[value.line - 1] = named + hash_sign + comment
    return b"".join(lines)


def list_model_files(stem: Path) -> list[Path]:
    """Return the files of a model, whose names begin with that of ``stem``."""
    if not stem.parent.is_dir():
        return []
    named = (path for path in stem.parent.iterdir() if path.name.startswith(stem.name))
    return sorted(path for path in named if path.is_file())


def with_weights(
    ini: MosesIni,
    weights: ShowWeights,
    *,
    sections: Mapping[str, Sequence[str]] | None = None,
    sparse_file: str | None = None,
    header: Sequence[str] = (),
    digits: int | None = 6,
) -> bytes:
    """Return the text of the configuration with other weights.

    Every other byte is kept. Weights that are not tuned stay. A feature without a line in
    ``[weight]`` gets one.

    Args:
        weights: features and weights, as the decoder lists them.
        sections: values to set, such as those of ``decoder_flags``: they replace the section of
            that name or form a new section at the end.
        sparse_file: value of ``[weight-file]``. Sparse weights in ``[weight]``, which would
            override those of the file, are removed.
        header: comment lines for the top, without their ``#``.
        digits: significant digits of the weights; None: as many as needed.

    Raises:
        FormatError: ``[weight]`` has another number of weights for a feature than the decoder, or
            lacks a weight that is not tuned; or a value cannot be written in this format.
    """
    settings = dict(sections or {})
    if sparse_file is not None:
        settings["weight-file"] = (sparse_file,)
    for name, values in settings.items():
        for value in values:
            if why := explain_unfit_value(value):
                raise FormatError(
                    f"[{name}] cannot be set to {quote(value)}: {why}",
                    path=ini.path,
                    remedy="Rename the file or directory",
                )
    end = b"\r\n" if ini.lines[0].endswith(b"\r\n") else b"\n"
    lines = list(ini.lines)
    _replace_weights(lines, ini, weights, sparse_file is not None, digits, end)
    for name, values in settings.items():
        _replace_section(lines, ini, name, values, end)
    comments = [b"# " + encode(" ".join(text.split())) + end for text in header]
    return b"".join([*comments, *lines])


def _replace_weights(
    lines: list[bytes],
    ini: MosesIni,
    weights: ShowWeights,
    drop_sparse: bool,
    digits: int | None,
    end: bytes,
) -> None:
    """Replace the numbers in the lines of ``[weight]``."""
    groups = {group.name: group.values for group in weights.groups if group.is_tuneable}
    texts = {
        name: [None if value is None else format_weight(value, digits) for value in values]
        for name, values in groups.items()
    }
    for value in ini.section("weight"):
        label, *numbers = _WORD.findall(value.text)
        name = label.removesuffix("=")
        if name in texts:
            if len(numbers) != len(texts[name]):
                raise FormatError(
                    f"{name} has {len(numbers)} weights, but the decoder lists {len(texts[name])}",
                    path=ini.path,
                    line=value.line,
                    remedy="Make [weight] agree with num-features",
                )
            lines[value.line - 1] = _replace_numbers(lines[value.line - 1], texts[name])
        elif drop_sparse and "_" in name and name not in weights.unchanged_features:
            lines[value.line - 1] = b""
    added = [_new_weight(ini, name, texts[name], end) for name in texts if name not in ini.weights]
    if "weight" in ini.sections:
        last = max((v.line for v in ini.section("weight")), default=ini.sections["weight"])
        _add_behind(lines, last - 1, b"".join(added), end)
    elif added:
        _add_section(lines, "weight", b"".join(added), end)


def _replace_numbers(line: bytes, texts: Sequence[str | None]) -> bytes:
    """Replace the numbers in a line of ``[weight]``; keep its blanks and its comment."""
    content, hash_sign, comment = line.partition(b"#")
    numbers = iter([None, *texts])

    def replace(match: re.Match[bytes]) -> bytes:
        text = next(numbers)
        return match[0] if text is None else encode(text)

    return re.sub(rb"\S+", replace, content) + hash_sign + comment


def _new_weight(ini: MosesIni, name: str, texts: Sequence[str | None], end: bytes) -> bytes:
    """Format a line for a feature that ``[weight]`` does not mention."""
    if None in texts:
        raise FormatError(
            f"[weight] lacks {name}, and some of its weights are not tuned",
            path=ini.path,
            remedy=f"Add a line: {name}= and {len(texts)} values",
        )
    return encode(f"{name}= {' '.join(text for text in texts if text is not None)}") + end


def explain_unfit_value(value: str) -> str | None:
    """Return why a ``moses.ini`` cannot hold this value, or None if it can.

    Moses reads a value up to a ``#`` or the end of the line and strips it.
    """
    if "\n" in value or "\r" in value:
        return "a value ends with its line"
    if "#" in value:
        return "# begins a comment"
    if value != value.strip():
        return "blanks at the ends of a line are stripped"
    if _SECTION.match(encode(value)):
        return "it would begin a section"
    return None


def add_features(ini: MosesIni, lines: str) -> bytes:
    """Return a configuration with more feature functions, lines of ``[feature]``."""
    content = list(ini.lines)
    if "feature" in ini.sections:
        _add_behind(content, ini.sections["feature"] - 1, encode(lines), b"\n")
    else:
        _add_section(content, "feature", encode(lines), b"\n")
    return b"".join(content)


def _replace_section(
    lines: list[bytes], ini: MosesIni, name: str, values: Sequence[str], end: bytes
) -> None:
    """Replace the values of a section in place, or add the section."""
    written = b"".join(encode(value) + end for value in values)
    old = ini.section(name)
    if old:
        lines[old[0].line - 1] = written
        for value in old[1:]:
            lines[value.line - 1] = b""
    elif name in ini.sections:
        _add_behind(lines, ini.sections[name] - 1, written, end)
    else:
        _add_section(lines, name, written, end)


def _add_section(lines: list[bytes], name: str, written: bytes, end: bytes) -> None:
    if lines[-1] and not lines[-1].endswith(b"\n"):
        lines[-1] += end
    lines.append(end + encode(f"[{name}]") + end + written)


def _add_behind(lines: list[bytes], at: int, text: bytes, end: bytes) -> None:
    """Insert whole lines after a line that may lack its line end."""
    if text and lines[at] and not lines[at].endswith(b"\n"):
        lines[at] += end
    lines[at] += text
