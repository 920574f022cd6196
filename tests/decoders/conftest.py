"""A decoder that answers at once, or not as it should."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.decoders.description import MosesDecoder

STAND_IN = Path(__file__).parent / "stand_in.py"


@pytest.fixture
def stand_in(tmp_path: Path) -> Callable[..., MosesDecoder]:
    """``stand_in("dies", file)``: the decoder that behaves like that; see ``stand_in.py``."""
    program = tmp_path / "decoder"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {STAND_IN} "$@"\n')
    program.chmod(0o755)
    (tmp_path / "moses.ini").write_text(
        "[feature]\nLM\nTM num-features=2 tuneable-components=true,false\n"
        "[weight]\nLM0= 1\nTM0= 0.5 2\n"
    )

    def made(*behavior: str | Path) -> MosesDecoder:
        flags = ("-pids", str(tmp_path / "pids"))
        if behavior:
            flags += ("-behave", *map(str, behavior))
        return MosesDecoder(program, flags)

    return made


@pytest.fixture
def pids(tmp_path: Path) -> Callable[[], list[int]]:
    """Process numbers of all stand-ins that were started."""

    def numbers() -> list[int]:
        path = tmp_path / "pids"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    return numbers
