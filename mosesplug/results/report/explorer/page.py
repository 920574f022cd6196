"""The page that shows runs and lets a reader change their weights.

It is one file: data, styles and scripts are inside, and its content security policy lets it load
nothing. Without scripts, and on paper, it shows the report of ``report.page``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from mosesplug.results.report.document import Script
from mosesplug.results.report.explorer.comparison import compare_runs
from mosesplug.results.report.explorer.run_data import ExplorerRun

_MODULES = (
    *("format", "metrics", "data", "model_scores", "scorer", "words", "state", "conditions"),
    *("elements", "chart", "session", "copies", "directions", "sliders", "weights_view"),
    *("sentences_view", "curves_view", "runs_view", "main"),
)
"""Modules of the page; each imports only those before it."""

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const)) (\w+)", re.MULTILINE)


def make_script(runs: Sequence[ExplorerRun]) -> Script:
    """Return the scripts of a page with the data of its runs."""
    document = {"runs": [run.document for run in runs], "comparisons": compare_runs(runs)}
    code = read_scripts()
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode("ascii")
    return Script(
        code=code,
        policy=(
            "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
            f"script-src 'sha256-{digest}'"
        ),
        style=_read("explorer.css"),
        data=_escape_json(document),
    )


@cache
def read_scripts() -> str:
    """Return all modules as one: a page cannot import modules from itself."""
    return "const modules = {};\n" + "\n".join(map(_wrap_module, _MODULES))


def _wrap_module(name: str) -> str:
    """Return a module as a function of its own scope, which returns what it exports."""
    text = _IMPORT.sub(r"const \1 = modules.\2;\n", _read(f"{name}.js"))
    exported = ", ".join(match[1] for match in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1 \2", text)
    return f"modules.{name} = (() => {{\n{body}return {{ {exported} }};\n}})();"


def _read(name: str) -> str:
    return (files(__package__) / "scripts" / name).read_text(encoding="utf-8")


def _escape_json(document: Any) -> str:
    """Return JSON that cannot end the element that it is in."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
