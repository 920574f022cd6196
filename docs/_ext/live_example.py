"""Tune the demo system and write the report of the run beside the pages of the manual.

Pages link it by ``<!-- generated: live-example -->``.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import mosesplug

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = "demo-run.html"
_PREPARE = Path(__file__).parents[2] / "moses-config" / "demo" / "prepare"
_SENTENCES = 60


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


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the example after the pages, if they are HTML and nothing failed."""

    def finish(app: Sphinx, error: Exception | None) -> None:
        if error is None and app.builder.format == "html":
            write_example(Path(app.outdir) / PAGE)

    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
