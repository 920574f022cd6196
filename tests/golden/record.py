"""Record the weights and scores of some rows: ``python -m tests.golden.record``.

For when results change on purpose: ``test_golden.py`` compares with what this writes.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.golden.rows import read_rows
from tests.golden.running import Runner, run_row
from tests.golden.sources import REPOSITORY, Source
from tests.golden.values import ROWS, VALUES, row_values


def main() -> None:
    """Run the rows with the working tree and write ``values.json``."""
    rows = {row.name: row for row in read_rows()}
    kept = {}
    with tempfile.TemporaryDirectory() as directory, Runner(Source(REPOSITORY)) as runner:
        for name in ROWS:
            kept[name] = row_values(rows[name], run_row(rows[name], runner, Path(directory) / name))
            print(name, sum(map(len, kept[name].values())))
    lines = (f"{json.dumps(name)}: {json.dumps(values)}" for name, values in kept.items())
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
