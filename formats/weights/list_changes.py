"""Record in files of weights how the lists were changed.

Features may be added or derived, and scores divided by a power of the length.

Weights are useful only for lists with the same features and the same division of scores. A file of
weights records which features came from other files, which were computed, and by what power of the
length scores were divided. JSON and YAML have keys::

    {"added": ["LM"], "derived": {"lm_norm": "lm/words"}, "templates": "templates.toml",
     "templates_digest": "0123456789abcdef", "length_exponent": 0.8,
     "length_features": ["lm", "LM"], "length_by": "chars"}

Without ``length_features`` all features are divided; without ``length_by`` the length is the number
of words. Name= value lines have comments::

    # added: LM
    # derived: lm_norm=lm/words
    # templates: templates.toml
    # templates-digest: 0123456789abcdef
    # length-exponent: lm,LM:0.8 chars
    lm= 0.5
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from formats.errors import FormatError, quote
from formats.weights.encoding import decode, encode

EXPONENT = "length_exponent"
"""The key of the exponent."""

RECORD_KEYS = (
    *("added", "derived", "templates", "templates_digest"),
    *(EXPONENT, "length_features", "length_by"),
)
"""The keys of all changes."""

_ADDED, _DERIVED, _LENGTH = b"# added:", b"# derived:", b"# length-exponent:"
_TEMPLATES, _DIGEST = b"# templates:", b"# templates-digest:"


@dataclass(frozen=True)
class ListChanges:
    """The changes made to lists before weights were learned from them.

    Attributes:
        added_features: names of the features with values from files or arrays.
        derived_features: the expression of each feature that was computed, by name.
        length_exponent: ``[NAME,...:]X [LENGTH]``: the features (all without names) were divided by
            the length to the power of X; empty if they were not. The length is the number of words,
            or a feature.
        templates: the declaration of sparse features that were computed; empty without one.
        templates_digest: the digest of its content; empty if it is unknown.
    """

    added_features: tuple[str, ...] = ()
    derived_features: Mapping[str, str] = field(default_factory=dict)
    length_exponent: str = ""
    templates: str = ""
    templates_digest: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features that were not in the lists."""
        return (*self.added_features, *self.derived_features)

    def makes(self, name: str) -> bool:
        """Return whether a name is that of such a feature or of its values (``LM_2``)."""
        group, underscore, number = name.rpartition("_")
        is_value = bool(underscore) and number.isdecimal()
        return name in self.names or (is_value and group in self.names)

    def __bool__(self) -> bool:
        return self != UNCHANGED


UNCHANGED = ListChanges()
"""All features were in the lists, and nothing was divided."""


def parse_list_changes(text: bytes) -> ListChanges:
    """Return the changes that the comments of a file of weights record."""
    added: list[str] = []
    derived: dict[str, str] = {}
    exponent = templates = digest = ""
    if not any(mark in text for mark in (_ADDED, _DERIVED, _LENGTH, _TEMPLATES)):
        return UNCHANGED
    for line in map(bytes.strip, text.split(b"\n")):
        if line.startswith(_ADDED):
            added.append(decode(line.removeprefix(_ADDED).strip()))
        elif line.startswith(_DERIVED):
            name, _, expression = decode(line.removeprefix(_DERIVED)).partition("=")
            derived[name.strip()] = expression.strip()
        elif line.startswith(_LENGTH):
            exponent = decode(line.removeprefix(_LENGTH).strip())
        elif line.startswith(_TEMPLATES):
            templates = decode(line.removeprefix(_TEMPLATES).strip())
        elif line.startswith(_DIGEST):
            digest = decode(line.removeprefix(_DIGEST).strip())
    return ListChanges(tuple(added), derived, exponent, templates, digest)


def format_list_changes(changes: ListChanges) -> bytes:
    """Return the comment lines that record changes; empty without changes."""
    lines = [f"{_ADDED.decode()} {name}\n" for name in changes.added_features]
    lines += [
        f"{_DERIVED.decode()} {name}={text}\n" for name, text in changes.derived_features.items()
    ]
    if changes.templates:
        lines.append(f"{_TEMPLATES.decode()} {changes.templates}\n")
    if changes.templates_digest:
        lines.append(f"{_DIGEST.decode()} {changes.templates_digest}\n")
    if changes.length_exponent:
        lines.append(f"{_LENGTH.decode()} {changes.length_exponent}\n")
    return encode("".join(lines))


def list_change_records(changes: ListChanges) -> dict[str, Any]:
    """Return changes by the keys of JSON and YAML; empty without changes."""
    records: dict[str, Any] = {}
    if changes.added_features:
        records["added"] = list(changes.added_features)
    if changes.derived_features:
        records["derived"] = dict(changes.derived_features)
    if changes.templates:
        records["templates"] = changes.templates
    if changes.templates_digest:
        records["templates_digest"] = changes.templates_digest
    if changes.length_exponent:
        spelled, _, by = changes.length_exponent.partition(" ")
        names, colon, exponent = spelled.rpartition(":")
        records[EXPONENT] = float(exponent)
        if colon:
            records["length_features"] = names.split(",")
        if by:
            records["length_by"] = by.strip()
    return records


def parse_change_records(
    records: Mapping[str, Any], make_error: Callable[[str], FormatError]
) -> ListChanges:
    """Return changes that keys of JSON or YAML record.

    Args:
        records: the values of ``RECORD_KEYS``, as ``json`` reads them.
    """
    added = records.get("added", [])
    if not _is_list_of_names(added):
        raise make_error("added is not a list of names")
    derived = records.get("derived", {})
    if not isinstance(derived, dict):
        raise make_error("derived is not a mapping of names to expressions")
    if wrong := [name for name, text in derived.items() if not isinstance(text, str)]:
        raise make_error(f"derived has no expression of {quote(wrong[0])}")
    templates = records.get("templates", "")
    if not isinstance(templates, str):
        raise make_error("templates is not the name of a file")
    digest = records.get("templates_digest", "")
    if not isinstance(digest, str):
        raise make_error("templates_digest is not a text")
    exponent = records.get(EXPONENT, "")
    if type(exponent) in (int, float):
        exponent = repr(float(exponent))
    if not isinstance(exponent, str):
        raise make_error(f"{EXPONENT} is not a number")
    features, by = records.get("length_features", []), records.get("length_by", "")
    if not _is_list_of_names(features):
        raise make_error("length_features is not a list of names")
    if not isinstance(by, str) or len(by.split()) > 1:
        raise make_error("length_by is not the name of a feature")
    if (features or by) and not exponent:
        raise make_error(f"{EXPONENT} is missing, which length_features and length_by are of")
    if features:
        exponent = f"{','.join(features)}:{exponent}"
    return ListChanges(tuple(added), dict(derived), f"{exponent} {by}".strip(), templates, digest)


def _is_list_of_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
