"""``mosesplug line`` as a user calls it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mosesplug.cli.main import main
from tests.results.runs import make_run


def test_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = make_run(tmp_path / "work")

    def run(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["line", str(work), *map(str, words)])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    code, out, _ = run("--direction", "LM0", "--at", 0.5, "--sentences", 1)
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "BLEU of the merged lists, as the weight of LM0_0 changes"
    assert lines[1].startswith("start  0.25: ")
    assert sum("<- start" in each for each in lines) == 1
    assert "1 sentences change on the way to 0.5" in lines
    assert lines[-2:] == ["  - she sees a small dog", "  + she sees one dog"]
    found = json.loads(run("--direction", "1:2", "--from", 0, "--to", 1, "--json")[1])
    assert found["start"]["at"] == 0.0
    assert len(found["scores"]) == len(found["thresholds"]) + 1
    assert found["best"]["score"] == max(found["scores"])
    assert run("--direction", "LM1")[0] == 2
    assert run("--direction", "LM0", "--from", 1, "--to", 0)[0] == 2
    for option in ("--from", "--to", "--at"):
        for number, message in (("nan", "a number, not nan"), ("inf", "a finite number")):
            code, out, error = run("--direction", "LM0", option, number)
            assert (code, out) == (2, "")
            assert f"{option} must be {message}" in error
    work = make_run(tmp_path / "rates", name="WER")
    lines = run("--direction", "LM0", "--sentences", 1)[1].splitlines()
    found = json.loads(run("--direction", "LM0", "--json")[1])
    sentence = found["moved"]["sentences"][0]
    assert lines[0].endswith("as the weight of LM0_0 changes; less is better")
    assert lines[1].endswith(f": {1.0 - found['start']['score']:.4f}")
    assert lines[2].endswith(f": {1.0 - found['best']['score']:.4f}")
    rows = [line.split()[3] for line in lines if re.match(r" *-?\d\.\d+ to ", line)]
    assert min(map(float, rows)) == pytest.approx(1.0 - max(found["scores"]), abs=1e-4)
    before, after = 1.0 - sentence["before_score"], 1.0 - sentence["after_score"]
    assert lines[-3].endswith(f"  {before:.4f} -> {after:.4f}")
    pytest.importorskip("matplotlib")
    assert run("--direction", "LM0", "--png", tmp_path / "line.png")[0] == 0
    assert (tmp_path / "line.png").read_bytes().startswith(b"\x89PNG")
