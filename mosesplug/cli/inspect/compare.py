"""``mosesplug compare``: whether systems differ by more than chance."""

from __future__ import annotations

import math
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mosesplug.cli.inspect.score import METRICS, MetricOption, Samples, Seed
from mosesplug.errors import UsageError

__all__ = ["compare"]


class Layout(StrEnum):
    """How the table is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    LATEX = "latex"
    JSON = "json"


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM...",
            help="Translations, the baseline first: FILE, or FILE,FILE,... for several runs of one "
            "system (optimizer seeds), or NAME=FILE,FILE,...; a working directory of tune stands "
            "for its tuned translations of the tuning set, those of all runs if there are several.",
        ),
    ],
    refs: Annotated[Path, typer.Option("--refs", help="The references: a file, or a prefix.")],
    metric: MetricOption = None,
    samples: Samples = 1000,
    trials: Annotated[int, typer.Option(min=1, help="Of approximate randomisation.")] = 10_000,
    seed: Seed = 1,
    layout: Annotated[
        Layout, typer.Option("--format", help="text, markdown, latex or json.")
    ] = Layout.TEXT,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the table only.")] = False,
) -> None:
    """Whether systems differ from the first by more than chance.

    p(AR) is from approximate randomisation (Riezler & Maxwell 2005), of several runs stratified
    (Clark et al. 2011). p(boot) is from the paired bootstrap, and wins the share of its samples in
    which the system is better (Koehn 2004); for systems of one run each. s_sel is the standard
    deviation over texts drawn from this one, s_opt that over the runs of the optimizer. Rates of
    errors (TER, WER, PER, CDER) are better if less.

    Example: mosesplug compare base=b1.en,b2.en,b3.en new=n1.en,n2.en,n3.en --refs test.en
    """
    from formats.references import read_references
    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.evaluation.translations import judges
    from mosesplug.evaluation.translations import systems as named

    if len(systems) < 2:
        raise UsageError("give two systems or more, the baseline first")
    if not samples:
        raise UsageError("--samples is at least 1")
    found = named(systems)
    lines = read_references(refs)
    wanted = judges(metric or METRICS, lines)
    rows: list[dict[str, Any]] = []
    with progress_bar(quiet) as progress:
        for judge in wanted:
            rows += _compared(judge, found, len(lines[0]), samples, trials, seed)
            progress(len(rows), len(wanted) * len(found), "systems")
    _WRITERS[layout](rows)


def _compared(
    judge: Any, systems: Any, n_sentences: int, samples: int, trials: int, seed: int
) -> list[dict[str, Any]]:
    """One row a system."""
    import numpy as np

    from mosesplug.evaluation.scores import candidate
    from mosesplug.evaluation.significance import (
        approximate_randomisation,
        paired_bootstrap,
        spread,
    )
    from mosesplug.evaluation.translations import figure

    name = judge.metric.name
    threads = os.cpu_count() or 1
    statistics = [
        [judge.statistics(candidate(path, n_sentences), threads) for path in paths]
        for _, paths in systems
    ]
    baseline = statistics[0]
    rows: list[dict[str, Any]] = []
    for (label, paths), runs in zip(systems, statistics, strict=True):
        # The same seed for all: they are compared on the same draws.
        around = spread(judge.metric, runs, samples, np.random.default_rng(seed))
        row: dict[str, Any] = {
            "metric": name,
            "system": label,
            "runs": len(paths),
            "score": figure(name, around.mean),
            "interval": sorted([figure(name, around.low), figure(name, around.high)]),
            "s_sel": around.selection,
            "s_opt": around.optimizer,
            "difference": None,
            "p_bootstrap": None,
            "wins": None,
            "p_randomisation": None,
            "signature": judge.prepared.signature,
        }
        if rows:
            row["difference"] = row["score"] - rows[0]["score"]
            row["p_randomisation"] = approximate_randomisation(
                judge.metric, baseline, runs, trials, np.random.default_rng(seed)
            )
            if len(runs) == len(baseline) == 1:
                rng = np.random.default_rng(seed)
                row["p_bootstrap"], row["wins"] = paired_bootstrap(
                    judge.metric, baseline[0], runs[0], samples, rng
                )
        rows.append(row)
    return rows


def _cells(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Heads and cells; columns that no row has are left out."""
    head = ["metric", "system", "runs", "score", "95 % interval", "s_sel", "s_opt"]
    head += ["difference", "p(AR)", "p(boot)", "wins"]
    cells = [
        [
            row["metric"],
            row["system"],
            str(row["runs"]) if any(each["runs"] > 1 for each in rows) else "",
            f"{row['score']:.4f}",
            "{:.4f} to {:.4f}".format(*row["interval"]),
            f"{row['s_sel']:.4f}",
            "" if math.isnan(row["s_opt"]) else f"{row['s_opt']:.4f}",
            "" if row["difference"] is None else f"{row['difference']:+.4f}",
            _p_value(row["p_randomisation"]),
            _p_value(row["p_bootstrap"]),
            "" if row["wins"] is None else f"{100 * row['wins']:.1f}%",
        ]
        for row in rows
    ]
    kept = [place for place in range(len(head)) if any(row[place] for row in cells)]
    return [head[place] for place in kept], [[row[place] for place in kept] for row in cells]


def _p_value(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _text(rows: list[dict[str, Any]]) -> None:
    from mosesplug.cli.shared.tables import print_table

    head, cells = _cells(rows)
    print_table(head, cells, left=2)
    print()
    for signature in dict.fromkeys(row["signature"] for row in rows):
        print(signature)


def _markdown(rows: list[dict[str, Any]]) -> None:
    head, cells = _cells(rows)
    print("| " + " | ".join(head) + " |")
    print("|" + "|".join([":--", ":--", *["--:"] * (len(head) - 2)]) + "|")
    for row in cells:
        print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    print()
    for signature in dict.fromkeys(row["signature"] for row in rows):
        print(f"`{signature}`")


def _latex(rows: list[dict[str, Any]]) -> None:
    head, cells = _cells(rows)
    print("\\begin{tabular}{ll" + "r" * (len(head) - 2) + "}\n\\hline")
    print(" & ".join(map(_escaped, head)) + " \\\\\n\\hline")
    for row in cells:
        print(" & ".join(map(_escaped, row)) + " \\\\")
    print("\\hline\n\\end{tabular}")
    for signature in dict.fromkeys(row["signature"] for row in rows):
        print(f"% {signature}")


def _escaped(text: str) -> str:
    """Text as LaTeX takes it."""
    special = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    special |= {character: "\\" + character for character in "&%$#_{}"}
    return "".join(special.get(character, character) for character in text)


def _json(rows: list[dict[str, Any]]) -> None:
    from mosesplug.cli.shared.output import print_json

    print_json(rows)


_WRITERS = {
    Layout.TEXT: _text,
    Layout.MARKDOWN: _markdown,
    Layout.LATEX: _latex,
    Layout.JSON: _json,
}
