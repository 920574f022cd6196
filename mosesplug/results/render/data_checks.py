"""Show the result of a check of data as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosesplug.results.render.tables import TextTable

if TYPE_CHECKING:
    from mosesplug.results.checking import DataCheck

_HEAD = ("text", "lines", "words", "a line", "longest", "empty", "repeated", "distinct words")

NO_WARNINGS = "no warnings"
"""The text that replaces an empty table of warnings."""


def tabulate_check(check: DataCheck) -> list[TextTable]:
    """Return the tables of texts, other figures and warnings that have rows."""
    texts = [
        (
            text.name,
            str(text.lines),
            str(text.words),
            f"{text.mean:.1f}",
            str(text.longest),
            str(text.empty),
            str(text.repeated),
            str(text.distinct),
        )
        for text in check.texts
    ]
    facts = [(name, f"{value:.4g}") for name, value in check.facts.items()]
    signs = [(sign.name, sign.message) for sign in check.signs]
    tables = [TextTable([_HEAD, *texts], left=1)]
    if facts:
        tables.append(TextTable([("figure", "value"), *facts], left=1))
    if signs:
        tables.append(TextTable([("warning", "message"), *signs], left=2))
    return tables
