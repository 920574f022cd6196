"""Comparing commits: what counts as slower, and a commit compared with itself."""

from __future__ import annotations

import math
import resource
import sys
from pathlib import Path

import pytest

from tests.benchmarks import compare_commits
from tests.benchmarks.compare_commits import ROOT, Comparison, Ratio, Usage, compare, main, select


def test_a_ratio_is_slower_beyond_noise_only() -> None:
    steady = Ratio.of([(1.0, 1.3), (1.1, 1.4), (0.9, 1.2), (1.0, 1.3)])
    assert steady.mean == pytest.approx(1.304, abs=0.01)
    assert steady.is_above(1.1)
    assert not steady.is_above(1.3)
    noisy = Ratio.of([(1.0, 1.3), (1.0, 0.8), (1.0, 2.9), (1.0, 1.0)])
    assert noisy.mean > 1.1
    assert not noisy.is_above(1.1)
    assert not Ratio.of([(1.0, 0.5), (1.0, 0.51)]).is_above(1.1)


def test_the_mean_of_ratios_has_no_side() -> None:
    pairs = [(1.0, 2.0), (4.0, 1.0), (1.0, 3.0)]
    swapped = Ratio.of([(head, base) for base, head in pairs])
    assert swapped.mean == pytest.approx(1.0 / Ratio.of(pairs).mean)
    assert swapped.error == pytest.approx(Ratio.of(pairs).error)


def test_one_pair_says_nothing_of_noise() -> None:
    alone = Ratio.of([(1.0, 9.0)])
    assert not alone.is_above(1.1)
    assert math.isinf(alone.error)
    assert str(alone) == "9.00"


def test_benchmarks_are_selected_by_parts_of_names() -> None:
    assert select(None) == list(compare_commits.BENCHMARKS)
    assert select(["ingest", "tune"]) == ["ingest", "tune the demo"]
    assert all("cold" in name for name in select(["cold"]))
    with pytest.raises(SystemExit, match="no benchmark has 'none such'"):
        select(["ingest", "none such"])


def test_the_table_tells_what_became_slower(capsys: pytest.CaptureFixture[str]) -> None:
    same, slow, large = Ratio(1.0, 0.01, 5), Ratio(1.5, 0.02, 5), Ratio(2.0, 0.01, 5)
    found = {
        "same": Comparison(same, same),
        "slow": Comparison(slow, same),
        "large": Comparison(same, large),
        "both": Comparison(slow, large),
        "new": None,
    }
    assert compare(list(found), found.__getitem__, 1.1) == ["slow", "large", "both"]
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| same | 1.00 ± 0.01 | 1.00 ± 0.01 |  |",
        "| slow | 1.50 ± 0.03 | 1.00 ± 0.01 | slower |",
        "| large | 1.00 ± 0.01 | 2.00 ± 0.02 | more memory |",
        "| both | 1.50 ± 0.03 | 2.00 ± 0.02 | slower, more memory |",
        "| new | not in base | | |",
    ]


def test_time_and_memory_of_all_processes_are_measured(tmp_path: Path) -> None:
    """A child takes 30 MB more and half a second; what this process holds does not count."""
    child = "import time; x = bytearray(30 << 20)\nwhile time.process_time() < 0.5: pass"
    parent = (
        f"import subprocess, sys; subprocess.call([sys.executable, '-c', {child!r}]); sys.exit(7)"
    )

    def run(program: str) -> tuple[Usage, int]:
        command = [sys.executable, "-ISc", program]
        return compare_commits._run(command, tmp_path, tmp_path, tmp_path)

    small, large = run(""), run(parent)
    assert (small[1], large[1]) == (0, 7)
    assert small[0].memory < resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2
    assert 28 << 10 < large[0].memory - small[0].memory < 40 << 10
    assert large[0].seconds - small[0].seconds > 0.5


def test_inputs_that_cannot_be_written_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_commits, "DECODER", "#!/bin/sh\nexit 3\n")
    with pytest.raises(SystemExit, match=r"exit code 3 of .* graphs"):
        compare_commits.prepare(tmp_path / "data", ["search graphs"])


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_a_commit_is_as_fast_as_itself(capsys: pytest.CaptureFixture[str]) -> None:
    # No time is judged: whatever the ratio is, it is below this factor.
    assert main(["HEAD", "HEAD", "--only", "--help, warm", "--pairs", "2", "--factor", "1e9"]) == 0
    assert "| --help, warm | " in capsys.readouterr().out
    with pytest.raises(SystemExit, match="not a commit"):
        main(["no-such-commit"])
