"""Moses' own programs, and a small system for them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.real_decoder.programs import Programs
from tests.real_decoder.system import System, cut_system


@pytest.fixture(scope="session")
def moses_home() -> Path:
    """Directory of Moses' programs; skips where it is absent."""
    default = Path(__file__).parents[3] / "shared" / "moses"
    home = Path(os.environ.get("MOSES_HOME", default)).absolute()
    if not (home / "bin" / "moses").is_file():
        pytest.skip(f"no Moses programs at {home} (set MOSES_HOME)")
    return home


@pytest.fixture(scope="session")
def system(multi30k: Path, tmp_path_factory: pytest.TempPathFactory) -> System:
    """A small German-English system."""
    directory = tmp_path_factory.mktemp("system")
    return cut_system(multi30k, directory, sentences=16, options=6)


@pytest.fixture
def programs(moses_home: Path, system: System, tmp_path: Path) -> Programs:
    """The programs, with a directory of their own."""
    if shutil.which("perl") is None:
        pytest.skip("no perl for mert-moses.pl")
    return Programs(moses_home, system, tmp_path)
