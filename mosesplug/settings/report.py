"""The settings of a report that bound it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from mosesplug.options import Opt


@dataclass(frozen=True)
class ReportSettings:
    """How much the page or the figure of ``mosesplug report`` holds."""

    examples: Annotated[
        int, Opt("Number of worst and of best sentences in the printed report.", minimum=0)
    ] = 5
    dpi: Annotated[int, Opt("Dots per inch of a PNG.", minimum=50)] = 300
    sentences: Annotated[
        int | None,
        Opt("Number of sentences whose lists the page holds, evenly spread [all].", minimum=1),
    ] = None
    max_size: Annotated[
        float, Opt("Largest size of the lists in the page.", metavar="MB", minimum=0.001)
    ] = 15.0
