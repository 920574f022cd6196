"""Tune the demo system and write the report of the run beside the pages of the manual.

Pages link it by ``<!-- generated: live-example -->``, and show its pictures by
``<!-- generated: live-picture NAME -->`` where Chromium is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import mosesplug

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = "demo-run.html"
_PREPARE = Path(__file__).parents[2] / "moses-config" / "demo" / "prepare"
_SENTENCES = 60
_LIMIT = 120.0
"""Seconds for a picture."""

TAKEN: list[str] = []
"""Names of the pictures that this build has."""


class Picture(NamedTuple):
    """A picture of the report.

    Attributes:
        state: the fragment of the report's address.
        size: width and height of the window.
        shows: what it shows, for those who do not see it.
    """

    state: str
    size: tuple[int, int]
    shows: str


PICTURES = {
    "weights": Picture(
        "tab=weights",
        (1150, 1150),
        "A slider, a number and an error surface for each weight; above them the BLEU of the "
        "present weights, and below them the sentences whose translations they change",
    ),
    "sentence": Picture(
        "tab=sentences&sentence=7",
        (1150, 1000),
        "A sentence: source, reference, the differences of its 1-best, and each feature's share of "
        "two model scores as bars",
    ),
    "curves": Picture(
        "tab=curves",
        (1150, 640),
        "Curves over the iterations: scores, and gains with confidence intervals",
    ),
    "phone": Picture(
        "tab=weights", (390, 844), "The sliders on a phone, each above its error surface"
    ),
}

_CHROMIUM = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--virtual-time-budget=4000"),
)


def write_example(output: Path) -> None:
    """Write the report of a run of the demo, with its source and its references."""
    search_path = os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"]))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        subprocess.run(
            ["sh", _PREPARE, str(_SENTENCES), "run"],
            cwd=directory,
            env={**os.environ, "PATH": search_path},
            check=True,
        )
        mosesplug.report(
            directory / "tuning",
            output,
            references=directory / "dev.ref",
            source=directory / "dev.src",
            title="A run of the demo",
        )


def take_pictures(page: Path) -> list[str]:
    """Write ``demo-NAME.png`` for each picture beside the report, and return the names.

    Without Chromium, none are taken. When Chromium fails, a message on stderr says so, and the
    remaining pictures are left out of the manual.
    """
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        return []
    taken: list[str] = []
    for name, picture in PICTURES.items():
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            command = [
                *(browser, *_CHROMIUM, f"--user-data-dir={profile}"),
                f"--window-size={picture.size[0]},{picture.size[1]}",
                f"--screenshot={page.with_name(f'demo-{name}.png')}",
                f"{page.resolve().as_uri()}#{picture.state}",
            ]
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=_LIMIT)
            except subprocess.SubprocessError as error:
                print(f"the report has no picture {name}: {error}", file=sys.stderr)
                break
        taken.append(name)
    return taken


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the example before the pages are read, which show its pictures."""

    def prepare(app: Sphinx) -> None:
        if app.builder.format == "html":
            page = Path(app.outdir) / PAGE
            page.parent.mkdir(parents=True, exist_ok=True)
            write_example(page)
            TAKEN.extend(take_pictures(page))

    app.connect("builder-inited", prepare)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
