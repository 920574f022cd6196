"""Compare tuning programs by the translations of held-out text.

    python -m tests.benchmarks.truth --out DIR [--systems moses-mert,mert,...] [--seeds 5]
        [--threads 2] [--sentences N] [--fold 0|1] [--flags ...] [--tune NAME="OPTIONS"] [--table]

Needs Moses' programs (MOSES_HOME) and the German-English system (MOSES_RECORDINGS). All systems
with five seeds take hours; ``--systems``, ``--seeds`` and ``--sentences`` shorten it. An
interrupted comparison is continued by the same command. ``--tune`` adds a system:
``mosesplug tune`` with options of your own. ``--table`` only prints what is there.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from pathlib import Path

from tests.benchmarks.truth.protocol import prepare_task, read_results, run_system
from tests.benchmarks.truth.systems import list_systems, tune_system
from tests.benchmarks.truth.table import format_table

ROOT = Path(__file__).parents[3]
FLAGS = "-v 0 -search-algorithm 1 -cube-pruning-pop-limit 400 -s 100"


def main() -> int:
    """Run what is missing, one seed of every system after the other, and print the table."""
    options = _parse()
    moses = Path(os.environ.get("MOSES_HOME", ROOT.parent / "shared" / "moses")).resolve()
    recordings = Path(os.environ.get("MOSES_RECORDINGS", ROOT.parent / "shared" / "data"))
    data = (recordings / "multi30k-de-en").resolve()
    for needed in (moses / "bin" / "moses", data / "model" / "moses.ini"):
        if not needed.exists():
            print(f"{needed}: not found. Set MOSES_HOME and MOSES_RECORDINGS.", file=sys.stderr)
            return 1
    systems = list_systems()
    for name, _, words in (each.partition("=") for each in options.tune):
        if name in systems or not re.fullmatch(r"[\w+-]+", name):
            print(f"--tune: {name!r} is no name, or that of another system", file=sys.stderr)
            return 2
        systems[name] = tune_system(name, *shlex.split(words))
    own = [each.partition("=")[0] for each in options.tune]
    names = [*(options.systems.split(",") if options.systems else [] if own else systems), *own]
    unknown = [name for name in names if name not in systems]
    if unknown:
        print(f"--systems: no {unknown[0]}; there are {', '.join(systems)}", file=sys.stderr)
        return 2
    out = options.out.resolve()
    task, judged = prepare_task(
        out,
        data,
        moses,
        flags=options.flags,
        threads=options.threads,
        sentences=options.sentences,
        fold=options.fold,
    )
    for seed in range(1, 1 + (0 if options.table else options.seeds)):
        for name in names if seed == 1 else [name for name in names if name != "untuned"]:
            result = run_system(systems[name], seed, task, judged, out)
            scores = ", ".join(f"{test} {bleu:.2f}" for test, bleu in result.bleu.items())
            print(f"{name} seed {seed}: {scores}; {result.wall:.0f} s", file=sys.stderr)
    results = read_results(out)
    order = dict.fromkeys([*systems, *(result.system for result in results)])
    print(format_table(results, list(order), judged, out), end="")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.truth")
    parser.add_argument("--out", type=Path, required=True, help="directory of all runs")
    parser.add_argument("--systems", help="names, separated by commas; by default all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, help="tune on the first N sentences only")
    parser.add_argument("--fold", type=int, choices=(0, 1), help="judge on the other half of dev")
    parser.add_argument("--flags", default=FLAGS, help="flags of the decoder")
    parser.add_argument(
        "--tune",
        action="append",
        default=[],
        metavar="NAME=OPTIONS",
        help="also run `mosesplug tune` with these options; without --systems, only these",
    )
    parser.add_argument("--table", action="store_true", help="run nothing, print what is there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
