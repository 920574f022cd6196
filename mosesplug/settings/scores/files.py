"""Scores from outside as settings name them.

The form is ``NAME=FILE[,FILE...][:error][:mean|:ratio|:METRIC]``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosesplug.errors import OptionName, UsageError, suggest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mosesplug.metrics.outside import Formula

_MARK = re.compile(r"(.*):([A-Za-z][\w-]*)(\[[^][]*\])?", re.DOTALL)


@dataclass(frozen=True, eq=False)
class ScoreSource:
    """Numbers for each hypothesis, in the order of the lists.

    Attributes:
        paths: files, one after the other as one sequence; empty with ``values``.
        values: float64 ``[n, k]`` instead.
        formula: None: ``mean`` or ``ratio``, by the number of columns, one or two.
    """

    name: str
    paths: tuple[Path, ...] = ()
    values: NDArray[Any] | None = None
    is_error_rate: bool = False
    formula: Formula | None = None

    @property
    def key(self) -> str:
        """Its name and marks, as ``TERX:error:ratio``."""
        marks = [self.name, *(["error"] if self.is_error_rate else [])]
        return ":".join([*marks, *([self.formula.name] if self.formula else [])])

    @property
    def place(self) -> str:
        """Its name in messages: the files, or the array."""
        return ", ".join(map(str, self.paths)) if self.paths else f"the array of {self.name}"


def parse_score_sources(
    texts: Sequence[str | ScoreSource], option: str = "scores"
) -> tuple[ScoreSource, ...]:
    """Return the sources that texts name.

    Args:
        texts: ``COMET=run1.comet,run2.comet`` or ``TERX=counts.txt:error:ratio``; sources are
            returned as they are.

    Raises:
        UsageError: a text has another form, or a name occurs twice.
    """
    sources = tuple(
        text if isinstance(text, ScoreSource) else _parse(text, option) for text in texts
    )
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"{OptionName(option)} names {name} twice: give several files of one metric as "
                f"{name}=FILE,FILE"
            )
    return sources


def split_marks(text: str) -> tuple[str, ScoreSource]:
    """Split ``:error`` and a formula off a text; return a source with them.

    Raises:
        UsageError: two formulas, a metric with unknown settings, or ``:error`` of a metric that is
            no error rate.
    """
    # Not above: --help does not need them.
    from mosesplug.metrics.error_rates import is_error_rate
    from mosesplug.metrics.registry import find_formula

    whole, source, formulas = text, ScoreSource(""), _formula_names()
    while (marked := _MARK.fullmatch(text)) is not None:
        unmarked, word, settings = marked.groups("")
        is_error = word == "error" and not settings
        if not (is_error or word in formulas):
            break
        if source.is_error_rate if is_error else source.formula:
            raise UsageError(f"{whole} ends with two formulas, or with :error twice: keep one")
        if is_error:
            source = replace(source, is_error_rate=True)
        else:
            source = replace(source, formula=find_formula(word + settings))
        text = unmarked
    if source.formula is not None and source.formula.metric is not None:
        is_rate = is_error_rate(source.formula.metric.signature())
        if source.is_error_rate and not is_rate:
            raise UsageError(f"{source.formula.name} is not an error rate: leave out :error")
        source = replace(source, is_error_rate=is_rate)
    return text, source


def suggest_formula(text: str, what: str = "The command") -> str:
    """Return advice if a command or file ends with a misspelled formula."""
    if (marked := _MARK.fullmatch(text)) is None:
        return ""
    _, word, settings = marked.groups("")
    known = ("error", *_formula_names())
    hint = suggest(word, known) or suggest(word.upper(), known)
    return f"{what} ends with :{word}{settings}{hint}" if hint else ""


def _formula_names() -> tuple[str, ...]:
    """Return the names that can follow a file or a command."""
    from mosesplug.metrics.registry import metric_names  # not above: --help does not need it

    return ("mean", "ratio", *metric_names())


def _parse(text: str, option: str) -> ScoreSource:
    name, equals, files = text.partition("=")
    files, source = split_marks(files)
    paths = files.split(",")
    if not (name and equals and all(paths)):
        raise UsageError(
            f"{OptionName(option)}={text}: write NAME=FILE, as COMET=scores.txt, or "
            "NAME=FILE:error for an error rate"
        )
    if not Path(paths[-1]).exists() and (advice := suggest_formula(paths[-1], "Its name")):
        raise UsageError(
            f"{OptionName(option)} {name}: {paths[-1]}: No such file or directory. {advice}"
        )
    return replace(source, name=name, paths=tuple(map(Path, paths)))
