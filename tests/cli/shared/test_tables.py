"""Tables on terminals of any width: nothing is dropped."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mosesplug.cli.shared.tables import draw_table
from mosesplug.results.render.tables import Cell

SCORES = ("metric", "system", "score", "95 % interval", "difference", "p(AR)")
ROWS = [
    ("BLEU", "base", "0.4333", "0.4211 to 0.4455", "", ""),
    ("TER-SACREBLEU", "new system", "0.5012", "0.4900 to 0.5100", "-0.0123", "0.0312"),
]


def draw(
    head: tuple[str, ...], rows: list[tuple[Cell, ...]], texts: set[int], labels: int, width: int
) -> list[str]:
    """Return the lines of a table on a terminal of this width."""
    file = io.StringIO()
    console = Console(file=file, width=width, color_system=None)
    draw_table(console, head, rows, texts, labels)
    return file.getvalue().splitlines()


def test_a_table_that_fits() -> None:
    assert draw(SCORES[:3], [row[:3] for row in ROWS], {0, 1}, 2, 60) == [
        "",
        "metric         system       score",
        "─────────────────────────────────",
        "BLEU           base        0.4333",
        "TER-SACREBLEU  new system  0.5012",
        "",
    ]


def test_a_wide_table_is_folded_and_each_part_names_its_rows() -> None:
    assert draw(SCORES, [*ROWS], {0, 1}, 2, 60) == [
        "",
        "metric         system       score     95 % interval",
        "───────────────────────────────────────────────────",
        "BLEU           base        0.4333  0.4211 to 0.4455",
        "TER-SACREBLEU  new system  0.5012  0.4900 to 0.5100",
        "",
        "metric         system      difference   p(AR)",
        "─────────────────────────────────────────────",
        "BLEU           base",
        "TER-SACREBLEU  new system     -0.0123  0.0312",
        "",
    ]


def test_text_wraps_and_keeps_its_styles() -> None:
    words = [(word, "bold") for word in ("she", "sees", "a small", "dog", "and", "a cat")]
    assert draw(("rank", "text", ""), [("1", words, "")], {1}, 1, 26) == [
        "",
        "rank  text",
        "──────────────────────────",
        "   1  she sees a small dog",
        "      and a cat",
        "",
    ]


def test_escapes_count_in_the_width() -> None:
    assert draw(("a", "b"), [("\x1b[1m", "2")], {0}, 1, 20) == [
        "",
        "a        b",
        "──────────",
        r"\x1b[1m  2",
        "",
    ]


_cells = st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=30)


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.tuples(
            st.lists(_cells, min_size=n, max_size=n),
            st.lists(st.lists(_cells, min_size=n, max_size=n), min_size=1, max_size=3),
            st.integers(0, n),
            st.integers(0, n),
        )
    ),
    st.integers(30, 130),
)
def test_every_cell_is_shown(
    table: tuple[list[str], list[list[str]], int, int], width: int
) -> None:
    head, rows, left, last = table
    n = len(head)
    texts = {*range(left), *range(n - last, n)}
    lines = draw(tuple(head), [tuple(row) for row in rows], texts, max(left, 1), width)
    shown = "".join("".join(lines).split())
    for row in (head, *rows):
        for place, cell in enumerate(row):
            if place not in texts:
                assert cell in shown
            else:  # may be broken
                assert all(character in shown for character in cell)
