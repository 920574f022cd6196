"""The demo learned online from its search graphs and with the decoder itself, as Markdown.

usage: python tests/benchmarks/forest_demo.py [--algorithm A] [--epochs N] [--every N]

One run decodes the tuning set once and keeps its search graphs, whole; another takes them for its
decoder. A third decodes anew every so many epochs, and a fourth has the decoder translate each
mini-batch, as a server. The held-out text has no part in tuning.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "moses-config" / "demo"
PROGRAMS = Path(sysconfig.get_path("scripts"))
DECODER = str(PROGRAMS / "mosesplug-decoder")


def seconds(directory: str, decoder: str, *options: str) -> float:
    """Tune, and say how long it took."""
    command = [
        *(PROGRAMS / "mosesplug", "tune", DEMO / "tune.tarvian", DEMO / "tune.english", decoder),
        *(DEMO / "moses.ini", "--working-dir", directory, "--seed", "1", "--quiet", *options),
    ]
    began = time.perf_counter()
    done = subprocess.run(list(map(str, command)), check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{directory}: {done.stderr}")
    return time.perf_counter() - began


def main() -> None:
    """Print the table, a row as soon as it is known."""
    sys.path.insert(0, str(DEMO))
    from tune_demo import held_out_bleu

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--algorithm", default="adagrad")
    parser.add_argument("--epochs", default="30")
    parser.add_argument("--every", default="10")
    given = parser.parse_args()
    learn = ("--online", "--algorithm", given.algorithm, "--epochs", given.epochs)
    graphs = ("--forest", "--forest-edges", "0")
    anew = ("--redecode-every", given.every)
    once = ("--max-iterations", "1", "--algorithm", "pro")
    print(f"| {given.algorithm}, {given.epochs} epochs | seconds | held-out BLEU |\n|---|---|---|")
    print(f"| before | | {held_out_bleu(DEMO / 'moses.ini'):.2f} |", flush=True)
    with tempfile.TemporaryDirectory() as place:
        for name, decoder, options in (
            ("one decoding, with search graphs", DECODER, (*graphs, *once)),
            ("learned from these", f"forest:{place}/0", learn),
            (f"graphs anew every {given.every}", DECODER, (*learn, *graphs, *anew)),
            ("the decoder as a server", DECODER, learn),
        ):
            number = len(list(Path(place).iterdir()))
            took = seconds(f"{place}/{number}", decoder, *options)
            bleu = f"{held_out_bleu(Path(place) / str(number) / 'moses.ini'):.2f}" if number else ""
            print(f"| {name} | {took:.0f} | {bleu} |", flush=True)


if __name__ == "__main__":
    main()
