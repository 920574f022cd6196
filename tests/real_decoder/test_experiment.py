"""An experiment with Moses: its script and this program, and the same bytes in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mosesplug
from tests.real_decoder.programs import Programs

EXPERIMENT = """
baseline = "script"
seeds = [7]
directory = "{directory}"
[settings]
decoder = "{moses}"
decoder-flags = "-v 0 -search-algorithm 1 -cube-pruning-pop-limit 60 -s 30"
nbest = 25
max-iterations = 2
threads = 1
[features.dense]
config = "{config}"
[tuning.all]
input = "{source}"
refs = "{reference}"
[tests.tuned]
input = "{source}"
refs = "{reference}"
[systems.script]
command = '''
perl {home}/scripts/training/mert-moses.pl {{input}} {{refs}} {{decoder}} {{config}}
  --mertdir {home}/bin --rootdir {home}/scripts --no-filter-phrase-table
  --working-dir {{directory}} --decoder-flags "{{decoder-flags}}" --nbest {{nbest}}
  --maximum-iterations 2 --mertargs "-r {{seed}}"
'''
[systems.kbmira]
algorithm = "kbmira"
option = {{ epochs = 5 }}
"""


def test_script_and_program(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed decides weights and translations, also in a process that hashes differently."""
    monkeypatch.chdir(programs.directory)
    system = programs.system
    path = programs.directory / "moses.toml"
    path.write_text(
        EXPERIMENT.format(
            directory=programs.directory / "here",
            home=programs.home,
            moses=programs.moses,
            config=system.config,
            source=system.source,
            reference=system.reference,
        )
    )
    table = mosesplug.run_experiment(path)
    rows = {row.system: row for row in table.rows}
    assert set(rows) == {"script", "kbmira"}
    assert all(row.decodings == 2 and row.active >= 14 and row.cpu > 0.0 for row in table.rows)
    assert all(10.0 < row.mean < 100.0 for row in table.rows)
    assert rows["kbmira"].tests[0].p is not None
    words = ["experiment", str(path), "--directory", "there", "--systems", "kbmira", "--quiet"]
    command = [sys.executable, "-c", "from mosesplug.cli.main import main; main()", *words]
    subprocess.run(command, check=True, capture_output=True)
    run = Path("runs") / "kbmira" / "dense" / "all" / "7"
    for name in ("tests/tuned.out", "work/run2.dense"):
        here, there = (
            (programs.directory / place / run / name).read_bytes() for place in ("here", "there")
        )
        assert here == there
