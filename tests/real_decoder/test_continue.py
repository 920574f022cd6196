"""``mert-moses.pl`` goes on with our runs, and we with its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.weights.any_format import read_weights
from tests.real_decoder import inputs
from tests.real_decoder.programs import Programs


@pytest.mark.parametrize("optimizer", ["mert", "sparse-kbmira"])
def test_the_script_after_us_and_we_after_the_script(programs: Programs, optimizer: str) -> None:
    is_mert = optimizer == "mert"
    more = () if is_mert else ("--batch-mira",)
    config = programs.system.config if is_mert else inputs.sparse(programs.system)
    programs.ours("work", *more, "--keep-extractor-files", config=config, iterations=1)
    result = _weights(programs.directory / "work", 1)
    work = programs.script("work", *more, "--continue", config=config, iterations=2)
    # The script decodes with the weights that we found.
    assert _weights(work, 1) == result
    dense = read_weights(work / "run2.dense").show.values
    assert dense == pytest.approx(result, abs=1e-6)
    programs.ours(
        "work", *more, "--continue", "--keep-extractor-files", config=config, iterations=3
    )
    features = (work / "run3.features.dat").read_text()
    assert features.startswith("FEATURES_TXT_BEGIN_0 0 ")
    assert (work / "finished_step.txt").read_text() == "3\n"
    if not is_mert:
        assert (work / "run3.sparse-weights").stat().st_size
    programs.script("work", *more, "--continue", config=config, iterations=4)
    assert (work / "run4.out").stat().st_size


def _weights(work: Path, iteration: int) -> tuple[float, ...]:
    return tuple(map(float, (work / f"run{iteration}.weights.txt").read_text().split()))
