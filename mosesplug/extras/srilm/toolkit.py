"""The launcher of SRILM's program."""

from __future__ import annotations

from mosesplug.cli.moses.install import Toolkit

SRILM = Toolkit(
    "srilm",
    "SRILM's nbest-optimize",
    {"nbest-optimize": ("mosesplug.extras.srilm.nbest_optimize", "main")},
    "PATH={}:$PATH ...",
)
