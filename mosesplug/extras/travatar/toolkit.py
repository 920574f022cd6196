"""The launchers of Travatar's programs."""

from __future__ import annotations

from mosesplug.cli.moses.install import Toolkit

_PROGRAMS = {
    name: (f"mosesplug.extras.travatar.{name.replace('-', '_')}", "main")
    for name in ("batch-tune", "rescorer")
}

TRAVATAR = Toolkit(
    "travatar",
    "Travatar's batch-tune and rescorer",
    # Scripts call the programs in the tree that Travatar is compiled in.
    {**_PROGRAMS, **{f"src/bin/{name}": place for name, place in _PROGRAMS.items()}},
    "TRAVATAR_DIR={} ...",
)
