"""A toy system for command lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOY_DECODER = Path(__file__).parents[1] / "data" / "toy" / "decoder.py"


@pytest.fixture
def toy_files(tmp_path: Path) -> list[str]:
    """Input, references, decoder and configuration of a toy system in ``tmp_path``."""
    decoder = tmp_path / "decoder"
    decoder.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {TOY_DECODER} "$@"\n')
    decoder.chmod(0o755)
    make = [sys.executable, "-IS", str(TOY_DECODER), "--make", str(tmp_path), "8"]
    subprocess.run(make, check=True)
    return [str(tmp_path / name) for name in ("input", "reference", "decoder", "moses.ini")]
