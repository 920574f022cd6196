"""The real ``mert-moses.pl`` with ``--mertdir`` at the programs of this package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real_decoder import inputs
from tests.real_decoder.programs import Programs, run_here


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tools")
    run_here(["install-tools", str(directory)])
    return directory


@pytest.mark.parametrize(
    "more",
    [
        ("--pro-starting-point",),
        ("--batch-mira", "--return-best-dev"),
        ("--hg-mira", "--batch-mira-args=-J 5"),
    ],
)
def test_modes(programs: Programs, tools: Path, more: tuple[str, ...]) -> None:
    # With sparse weights, the script's --return-best-dev may name a file that it never wrote.
    config = inputs.sparse(programs.system) if "--pro-starting-point" in more else None
    work = programs.script("work", *more, config=config, mertdir=tools, iterations=1)
    log = (work / "run1.mert.log").read_text()
    assert ("Best point:" if "--pro-starting-point" in more else "Best BLEU =") in log
    assert (work / "run2.sparse-weights").is_file() == (config is not None)
    assert programs.decode("-config", work / "moses.ini", "-show-weights")
    if "--hg-mira" not in more:
        # The script writes these two by the extractor, whoever made it.
        theirs = programs.script("theirs", "--batch-mira", config=config, iterations=1)
        for name in ("run1.features.dat", "run1.scores.dat"):
            assert (work / name).read_bytes() == (theirs / name).read_bytes()
