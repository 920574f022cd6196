"""Fixtures shared by the tests of the launchers."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosesplug.cli.moses import extractor


@pytest.fixture(scope="session")
def extracted(multi30k: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Path]]:
    """Binary extractor files of the seven recorded lists: features and scores of each."""
    directory = tmp_path_factory.mktemp("extracted")
    files = []
    for run in range(1, 8):
        nbest = multi30k / "mert-work" / f"run{run}.best100.out.gz"
        features, scores = (directory / f"run{run}.{kind}" for kind in ("features", "scores"))
        words = ("--nbest", str(nbest), "--ffile", str(features), "--scfile", str(scores), "-b")
        with pytest.raises(SystemExit) as ended:
            extractor.main([*words, "--reference", str(multi30k / "text" / "dev.en")])
        assert ended.value.code == 0
        files.append((features, scores))
    return files
