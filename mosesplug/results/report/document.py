"""The frame of a page: one self-contained HTML file.

The page is for screens of any width and for paper, and light or dark as the reader prefers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Literal

from mosesplug.escapes import escape_controls

_STYLE = """
:root { color-scheme: light; --paper: #ffffff; --ink: #0f172a; --faint: #475569; --rule: #94a3b8;
  --stripe: #f8fafc; --edge: #cbd5e1; --link: #1d4ed8; --warning: #b45309; }
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --paper: #0f172a; --ink: #e2e8f0; --faint: #94a3b8; --rule: #64748b;
    --stripe: #1e293b; --edge: #475569; --link: #93c5fd; --warning: #fbbf24; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 64rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
a { color: var(--link); } nav p { margin: 1rem 0; }
nav a { margin-right: 1rem; display: inline-block; }
p.note { color: var(--faint); margin: .25rem 0 .75rem; }
p.warning { border-left: 3px solid var(--warning); padding-left: .75rem; margin: .5rem 0; }
code { font-size: .85em; overflow-wrap: anywhere; }
.wide { overflow-x: auto; background:
  linear-gradient(to right, var(--paper) 50%, transparent) left / 2rem 100% no-repeat local,
  linear-gradient(to left, var(--paper) 50%, transparent) right / 2rem 100% no-repeat local,
  linear-gradient(to right, var(--edge), transparent) left / .6rem 100% no-repeat scroll,
  linear-gradient(to left, var(--edge), transparent) right / .6rem 100% no-repeat scroll; }
svg { max-width: 100%; height: auto; display: block; } svg text { fill: currentColor; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(27rem, 100%), 1fr));
  gap: 0 2rem; }
.small { display: grid; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr));
  gap: .5rem 1rem; }
#lattice svg { max-width: none; margin-bottom: 1rem; }
.graph { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start; }
.graph figure { max-width: 100%; }
table { border-collapse: collapse; font-size: .85rem; } th, td { padding: .2rem .6rem; }
th { text-align: left; border-bottom: 1px solid var(--rule); } td.n, th.n { text-align: right;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
tr:nth-child(even) td { background: var(--stripe); }
td + td { overflow-wrap: anywhere; } dl { margin: .5rem 0 1rem; }
dt { color: var(--faint); font-size: .8rem; }
dd { margin: 0 0 .3rem; overflow-wrap: anywhere; }
dl.facts, dl.columns { display: grid; grid-template-columns: max-content minmax(0, 1fr);
  gap: .1rem 1rem; } dl.facts dt, dl.columns dt { font-size: .85rem; }
dl.facts dd, dl.columns dd { margin: 0; font-size: .85rem; }
.sentence { border-left: 3px solid var(--edge);
  padding-left: .75rem; margin: 1rem 0; break-inside: avoid; }
@media (max-width: 30rem) { body { padding: 1rem .75rem; } th, td { padding: .2rem .35rem; }
  table { font-size: .8rem; }
  .stacked, .stacked :is(thead, tbody) { display: block; }
  .stacked tr { display: grid; grid-template-columns: repeat(5, minmax(0, 1fr));
    align-items: center; }
  .stacked tr:has(> .n:first-child:nth-last-child(6)) {
    grid-template-columns: repeat(3, minmax(0, 1fr)); }
  .stacked tr:has(> .n:first-child:nth-last-child(8)) {
    grid-template-columns: repeat(4, minmax(0, 1fr)); }
  .stacked tr:has(th) { border-bottom: 1px solid var(--rule); }
  .stacked tr:nth-child(even) { background: var(--stripe); }
  .stacked :is(th, td) { border: 0; padding-inline: .2rem; }
  .stacked td { font-size: .75rem; }
  .stacked th { font-size: .65rem; padding-inline: .1rem; white-space: normal; }
  .stacked [style] { grid-column: 1 / -1; } }
@media print { body { max-width: none; font-size: 10pt; } h2, p.note { break-after: avoid; }
  p.note, figure, .figures section, thead, tr { break-inside: avoid; } nav { display: none; }
  h1[id|="run"]:not(#run) { break-before: page; }
  .wide { background: none; } }
figure { margin: 0; }
"""

_PART = re.compile('(?=<h1 id=")')
_HEADING = re.compile('<h([12]) id="([^"]*)">(.*?)</h')

_WITHOUT_SCRIPTS = (
    '<noscript><p class="note">This browser runs no scripts, so the weights, sentences and curves '
    "cannot be explored here. The report follows as it is printed.</p></noscript>"
)

_FEWEST = 4
"""Number of sections from which a page has a list of its contents."""


@dataclass(frozen=True)
class Script:
    """The scripts of a page, which replace its sections in a browser.

    Attributes:
        code: JavaScript, a module.
        policy: the content security policy, which allows this code only.
        style: CSS.
        data: JSON, without ``<``.
    """

    code: str
    policy: str
    style: str
    data: str


def render_document(
    title: str, sections: Iterable[str], style: str = "", script: Script | None = None
) -> str:
    """Return a whole page, with a list of its contents if it has many sections.

    Args:
        title: the title of the window.
        sections: the HTML of the page, in order; the first is its head.
        style: CSS beside that of all pages.
        script: the scripts that replace the sections in a browser; the sections are still printed,
            and shown where scripts are off.
    """
    head, *others = sections
    body = "\n".join(others)
    body = f"{_list_contents(body)}{body}"
    policy = ""
    if script is not None:
        style += script.style
        policy = f'<meta http-equiv="Content-Security-Policy" content="{escape(script.policy)}">\n'
        body = (
            f'<div id="explorer">{_WITHOUT_SCRIPTS}</div>\n<div id="report">\n{body}\n</div>\n'
            f'<script type="application/json" id="explorer-data">{script.data}</script>\n'
            f'<script type="module">{script.code}</script>'
        )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"{policy}"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n"
        f"{head}\n{body}\n</body>\n</html>\n"
    )


def _list_contents(body: str) -> str:
    """Return links to the headings; each part with a title has a paragraph of its own."""
    parts = [_HEADING.findall(part) for part in _PART.split(body)]
    if sum(map(len, parts)) < _FEWEST:
        return ""
    paragraphs = ["\n".join(itertools.starmap(_link, headings)) for headings in parts if headings]
    return f"<nav><p>{'</p><p>'.join(paragraphs)}</p></nav>\n"


def _link(level: str, name: str, heading: str) -> str:
    link = f'<a href="#{name}">{heading}</a>'
    return f"<b>{link}</b>" if level == "1" else link


def render_section(heading: str, note: str, content: str) -> str:
    """Return a section of a page; ``content`` is HTML."""
    name = re.sub(r"\W+", "-", heading.lower()).strip("-")
    paragraph = f'<p class="note">{escape(note)}</p>\n' if note else ""
    return f'<section>\n<h2 id="{name}">{escape(heading)}</h2>\n{paragraph}{content}\n</section>'


def render_terms(terms: Mapping[str, str], kind: Literal["facts", "columns"]) -> str:
    """Return names and values one below the other.

    They may also say what the columns of a table mean.
    """
    items = "".join(
        f"<dt>{escape(escape_controls(name))}</dt><dd>{escape(escape_controls(text))}</dd>\n"
        for name, text in terms.items()
    )
    return f'<dl class="{kind}">\n{items}</dl>\n'
