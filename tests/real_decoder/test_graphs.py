"""Search graphs of the real decoder: MERT on them, and learning online from them."""

from __future__ import annotations

import pytest

from tests.real_decoder import inputs
from tests.real_decoder.programs import Programs

FEW = ("--option", "restarts=1")


@pytest.mark.parametrize("search", ["phrases", "hierarchical"])
def test_mert_on_graphs(programs: Programs, search: str) -> None:
    is_plain = search == "phrases"
    config = programs.system.config if is_plain else inputs.hierarchical(programs.system)
    flags = () if is_plain else ("--decoder-flags", "-v 0")
    work = programs.tune("work", "--forest", *FEW, "--max-iterations", "1", *flags, config=config)
    assert programs.decode("-config", work / "moses.ini", "-show-weights")
    assert len(list((work / "hypergraph").glob("*.gz"))) == 16
