"""The settings and the outcome of a stored run, in words.

A store keeps settings as Python writes their values, to compare them with those of a continued run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from mosesplug.metrics.error_rates import display_score
from mosesplug.results.report.data import OutcomeFacts
from mosesplug.results.views.run import StoredRun
from mosesplug.tuning.workdir.records import IterationStart, read_start

_UNSET = ("None", "()", "", "False")
"""Stored values of settings that are not in use."""

_EXPRESSION = re.compile(r"(?:[(\['\"{]|[A-Z]\w*\().*[)\]'\"}]|True", re.DOTALL)

_ALGORITHM = "algorithm"

_ALL = {"earlier iterations": "-1"}
"""Values that stand for all."""

_ONLINE_AVERAGE = "average of updates"

_SELECTED = {
    "average": "the average of the weights of all iterations",
    _ONLINE_AVERAGE: "the average of the weights after all updates",
    "best-dev": "those with the best score of the tuning set",
    "best-heldout": "those with the best score of the held-out text",
    "last": "the last ones",
}
"""Descriptions of the values of ``--select``."""

_SCORED_ON = {
    "decoded": "decoded",
    "lists": "in the merged lists",
    "graphs": "in the search graphs",
    "learning": "while learning in the last epoch",
    "heldout": "on the held-out text",
}


def describe_configuration(run: StoredRun) -> dict[str, str]:
    """Return settings by name; those that are not in use are named together."""
    start = read_start(run.records[-1])
    used = {name: value for name, value in start.settings.items() if value not in _UNSET}
    facts = {
        "store": str(run.path),
        "sentences": str(run.n_sentences),
        "iterations": str(len(run.records)),
        "weights": run.weights_origin,
    }
    if not start.is_imported:
        facts["seed"] = str(start.seed)
    for name, value in used.items():
        facts |= _describe_setting(name, value)
    if not start.is_imported:
        facts["decoder"] = " ".join(start.command) or "none"
    if unused := [name for name in start.settings if name not in used]:
        facts["not in use"] = ", ".join(unused)
    return facts


def describe_outcome(run: StoredRun) -> OutcomeFacts:
    """Return how a run went, from its summary or else from its last iteration."""
    start = read_start(run.records[-1])
    algorithm = _find_algorithm(start)
    warnings = (f"This run has {run.weighting}.",) if run.weighting else ()
    if run.summary is None:
        reason = "" if start.is_imported else "not yet: the run goes on, or was interrupted"
        return OutcomeFacts(algorithm, reason, run.weights_origin, warnings)
    document = run.summary.document
    result = document["result"]
    selected = str(result.get("selected"))
    if document.get("online") and selected == "average":
        selected = _ONLINE_AVERAGE
    words = [_SELECTED.get(selected, run.weights_origin)]
    if decoded := result.get("decoded_in_iteration"):
        words.append(f"decoded in iteration {decoded}")
    if isinstance(score := result.get("score"), float):
        where = _SCORED_ON.get(str(result.get("score_of")), "")
        shown = display_score(run.signature, score)
        words.append(f"{run.metric_name} {shown:.4f} {where}".rstrip())
    return OutcomeFacts(
        algorithm=str(document.get("algorithm", algorithm)),
        reason=str(document.get("reason", "")),
        weights="; ".join(words),
        warnings=(*map(str, document.get("warnings", ())), *warnings),
    )


def _find_algorithm(start: IterationStart) -> str:
    return start.settings.get(_ALGORITHM, "").partition(" ")[0]


def _describe_setting(name: str, value: str) -> Mapping[str, str]:
    """Return a stored setting in words; an algorithm with each of its options."""
    if value == _ALL.get(name):
        return {name: "all"}
    first, _, arguments = value.partition(" ")
    if name == _ALGORITHM and isinstance(call := _parse(arguments), ast.Call):
        options = {f"{first} {keyword.arg}": _format(keyword.value) for keyword in call.keywords}
        return {name: first, **options}
    expression = _parse(value)
    return {name: value if expression is None else _format(expression)}


def _parse(text: str) -> ast.expr | None:
    """Return the expression of a stored value; None if it is plain text."""
    if not _EXPRESSION.fullmatch(text):
        return None
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _format(value: ast.expr) -> str:
    """Return an expression in words, without quotes and names of classes."""
    match value:
        case ast.Constant(value=None):
            return "none"
        case ast.Constant(value=bool(given)):
            return "yes" if given else "no"
        case ast.Constant(value=str(text)):
            return text
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            nested = (ast.Tuple, ast.List, ast.Set)
            return ", ".join(
                f"({_format(part)})" if isinstance(part, nested) else _format(part)
                for part in parts
            )
        case ast.Call(keywords=keywords) if keywords:
            return ", ".join(f"{keyword.arg} {_format(keyword.value)}" for keyword in keywords)
        case _:
            return ast.unparse(value)
