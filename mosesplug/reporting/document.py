"""The frame of a page: one self-contained HTML file.

The page is for screens of any width and for paper.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["DARK_STYLE", "render_document", "render_section"]

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #0f172a; background: white;
  max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p.note { color: #475569; margin: .25rem 0 .75rem; }
code { font-size: .85em; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } svg { max-width: 100%; height: auto; display: block; }
table { border-collapse: collapse; font-size: .85rem; } th, td { padding: .2rem .6rem; }
th { text-align: left; border-bottom: 1px solid #94a3b8; } td.n, th.n { text-align: right;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
tr:nth-child(even) td { background: #f8fafc; }
td { overflow-wrap: anywhere; } dl { margin: .5rem 0 1rem; }
dt { color: #475569; font-size: .8rem; }
dd { margin: 0 0 .3rem; overflow-wrap: anywhere; } .sentence { border-left: 3px solid #cbd5e1;
  padding-left: .75rem; margin: 1rem 0; break-inside: avoid; }
@media print { body { max-width: none; font-size: 10pt; } h2 { break-after: avoid; }
  figure { break-inside: avoid; } }
figure { margin: 0; }
"""

DARK_STYLE = """
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; } body { color: #e2e8f0; background: #0f172a; }
  p.note, dt { color: #94a3b8; } th { border-bottom-color: #64748b; }
  tr:nth-child(even) td { background: #1e293b; } .sentence { border-left-color: #475569; }
}
"""
"""CSS of pages without pictures of matplotlib, which are light."""


def render_document(title: str, sections: Iterable[str], style: str = "") -> str:
    """Return a whole page.

    Args:
        title: the title of the window.
        sections: the HTML of the page, in order.
        style: CSS beside that of all pages.
    """
    body = "\n".join(sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n{body}\n"
        "</body>\n</html>\n"
    )


def render_section(heading: str, note: str, content: str) -> str:
    """Return a section of a page; ``content`` is HTML."""
    paragraph = f'<p class="note">{escape(note)}</p>\n' if note else ""
    return f"<h2>{escape(heading)}</h2>\n{paragraph}{content}"
