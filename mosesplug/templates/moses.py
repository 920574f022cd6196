"""Write templates as feature functions of a moses.ini, and check such functions."""

from __future__ import annotations

from collections.abc import Mapping

from formats.errors import FormatError
from formats.moses.ini import MosesIni
from mosesplug.errors import UsageError
from mosesplug.options import list_options
from mosesplug.templates.declaration import Templates
from mosesplug.templates.functions import (
    PhrasePairFeature,
    ShapeFeature,
    SourceWordDeletionFeature,
    TargetBigramFeature,
    TargetNgramFeature,
    TargetWordInsertionFeature,
    WordTranslationFeature,
)
from mosesplug.templates.template import Template

__all__ = ["OWN_FUNCTIONS", "check_factors", "format_ini_functions"]

OWN_FUNCTIONS = {
    f"Feature name {ShapeFeature.__name__}": ShapeFeature.__name__,
    "Unknown argument window": "window",
}
"""Functions and settings that only the bundled decoder has, by Moses' message for each."""

_FACTORS: Mapping[str, tuple[str, ...]] = {
    PhrasePairFeature.__name__: ("input-factor", "output-factor"),
    SourceWordDeletionFeature.__name__: ("factor",),
    TargetBigramFeature.__name__: ("factor",),
    TargetNgramFeature.__name__: ("factor",),
    TargetWordInsertionFeature.__name__: ("factor",),
    WordTranslationFeature.__name__: ("input-factor", "output-factor"),
}
"""Factors by function. Moses never sets those that its line lacks, and may crash."""


def check_factors(ini: MosesIni) -> None:
    """Check that the lines of sparse feature functions name their factors.

    Raises:
        FormatError: a line lacks one.
    """
    for line in ini.features:
        missing = [key for key in _FACTORS.get(line.kind, ()) if key not in line.arguments]
        if missing:
            raise FormatError(
                f"{line.kind} has no {' and '.join(missing)}: Moses would read memory that it "
                "never set, and may crash or compute other features",
                path=ini.path,
                line=line.line,
                remedy=f"Add {' '.join(f'{key}=0' for key in missing)} to the line",
            )


def format_ini_functions(templates: Templates, folder: str) -> tuple[str, Mapping[str, bytes]]:
    """Return the lines of ``[feature]`` of templates, and the vocabularies they name.

    Args:
        folder: where the vocabularies will be.

    Returns:
        The lines, and the content of each file by its name in the folder.

    Raises:
        UsageError: decoders cannot compute a template.
    """
    lines: list[str] = []
    files: dict[str, bytes] = {}
    for template in templates.templates:
        _check(template, templates.path)
        cls: type = type(template)
        words = [cls.__name__, f"name={template.name}"]
        words += [f"{key}=0" for key in _FACTORS.get(cls.__name__, ())]
        for option in list_options(cls):
            value = getattr(template, option.path[0])
            if isinstance(value, frozenset):
                name = f"{template.name}.{option.name}"
                text = "".join(f"{word}\n" for word in sorted(value))
                files[name] = text.encode("utf-8", "surrogateescape")
                words.append(f"{option.name}={folder}/{name}")
            elif option.kind == "flag":
                words.append(f"{option.name}={int(value)}")
            elif value is not None and value != option.default:
                words.append(f"{option.name}={value}")
        if isinstance(template, PhrasePairFeature):
            words.append(f"unrestricted={int(template.words is None)}")
        if isinstance(template, TargetBigramFeature) and template.words is None:
            words.append("path=*")
        if isinstance(template, TargetNgramFeature):
            words = [word for word in words if not word.startswith("n=")]
            words.append(f"n={template.n}")
        lines.append(f"{' '.join(words)}\n")
    return "".join(lines), files


_USE_LISTS = (
    "Learn the features from n-best lists with mosesplug optimize --templates, and use them with "
    "mosesplug rerank --templates"
)


def _check(template: Template, path: str) -> None:
    """Check that a decoder can compute a template."""
    if not isinstance(template, WordTranslationFeature):
        return
    place = f"{path}: [{template.name}]"
    if template.reach is None:
        raise UsageError(
            f"{place} target-context: no decoder computes features of all earlier target words. "
            f"The bundled decoder needs a window, such as window = 2. {_USE_LISTS}"
        )
    if (template.source_words is None) != (template.target_words is None):
        raise UsageError(
            f"{place}: decoders restrict the words of both sides or of none. Give source-path and "
            "target-path"
        )
