"""Write formulas as MathML, which browsers draw themselves: no script and no network."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_LIMITS = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}
_WITH_LIMITS = {"∑", "max", "min", "argmax", "argmin"}


_BARS = {"|", "‖"}


def format_formula(formula: str, *, display: bool) -> str:
    """Return a TeX formula as MathML.

    The converter lets bars stretch, which only suits brackets that it knows as a pair, and writes
    the limits of a displayed maximum beside it.
    """
    ElementTree.register_namespace("", _NAMESPACE)
    root = ElementTree.fromstring(convert(formula, display="block" if display else "inline"))
    for element in root.iter():
        kind = element.tag.rpartition("}")[2]
        if element.text in _BARS:
            element.set("stretchy", "false")
        if display and kind in _LIMITS and element[0].text in _WITH_LIMITS:
            element.tag = f"{{{_NAMESPACE}}}{_LIMITS[kind]}"
    return ElementTree.tostring(root, encoding="unicode")


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(format_formula(node.astext(), display=False))
    raise nodes.SkipNode


def _visit_display(translator: Any, node: nodes.math_block) -> None:
    formula = format_formula(node.astext(), display=True)
    translator.body.append(f'<div class="formula">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
