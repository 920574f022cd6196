"""Lists to measure with: the recorded ones where they are, else made up ones of the same size."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.benchmarks.synthetic import make


@dataclass(frozen=True)
class Workload:
    """Seven n-best lists of one text, its reference, and starting weights (None: all equal)."""

    name: str
    lists: list[Path]
    references: Path
    start: Path | None


@pytest.fixture(scope="session")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    """The recorded German-English lists, or synthetic ones."""
    default = Path(__file__).parent.parent.parent.parent / "shared" / "data"
    system = Path(os.environ.get("MOSES_RECORDINGS", default)) / "multi30k-de-en"
    if system.is_dir():
        work = system / "mert-work"
        lists = [work / f"run{run}.best100.out.gz" for run in range(1, 8)]
        return Workload("recorded", lists, system / "text" / "dev.en", work / "run7.init.opt")
    lists, references = make(tmp_path_factory.mktemp("lists"), 7)
    return Workload("synthetic", lists, references, None)
