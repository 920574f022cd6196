"""Tunes the demo system with ``mosesplug tune``, then translates held-out text with the weights of
before and after and scores both with sacrebleu. With ``--sparse``, it tunes the system for
postcards instead, with dense features and then with the sparse features of
``postcards/templates.toml``, and compares the results on held-out postcards."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import sacrebleu

DEMO = Path(__file__).resolve().parent
POSTCARDS = DEMO / "postcards"
PROGRAMS = Path(sysconfig.get_path("scripts"))
DECODER = PROGRAMS / "mosesplug-decoder"
THREADS = str(os.cpu_count() or 1)


def run(program: str, arguments: Sequence[str | Path]) -> None:
    """Show and run a command of mosesplug that a user would run."""
    words = [str(word) for word in (PROGRAMS / "mosesplug", program, *arguments)]
    print(f"$ {shlex.join(words)}", flush=True)
    done = subprocess.run(words, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def tune(system: Path, working_directory: Path, options: Sequence[str | Path]) -> None:
    """Tune the system in a folder, with any further options."""
    files = (system / "tune.tarvian", system / "tune.english", DECODER, system / "moses.ini")
    threads = ("--decoder-flags", f"-threads {THREADS}")
    fixed = ("--working-dir", working_directory, "--seed", "1", "--overwrite")
    run("tune", [*files, *fixed, *threads, *options])


def translate(system: Path, config: Path) -> bytes:
    """Translate the test set of a system with a configuration."""
    words: list[str | Path] = [DECODER, "-config", config]
    words += ["-input-file", "test.tarvian", "-threads", THREADS]
    # The configurations name the tables by relative paths, as Moses' own samples do.
    done = subprocess.run(words, check=False, capture_output=True, cwd=system)
    if done.returncode:
        sys.exit(done.stderr.decode(errors="replace") or done.returncode)
    return done.stdout


def held_out_bleu(config: Path) -> float:
    """BLEU of the test set, two references, translated with a configuration."""
    references = [(DEMO / f"test.english{i}").read_text().splitlines() for i in (0, 1)]
    hypotheses = translate(DEMO, config).decode().splitlines()
    return float(sacrebleu.corpus_bleu(hypotheses, references, tokenize="none").score)


def tune_demo(working_directory: Path, options: Sequence[str]) -> None:
    """Tune, and score before and after."""
    tune(DEMO, working_directory, options)
    print("translating held-out text with the old and the new weights ...", flush=True)
    before = held_out_bleu(DEMO / "moses.ini")
    after = held_out_bleu(working_directory / "moses.ini")
    print(f"held-out BLEU before tuning  {before:.2f}")
    print(f"held-out BLEU after tuning   {after:.2f}")


def tune_postcards(working_directory: Path, options: Sequence[str]) -> None:
    """Tune with and without sparse features, and compare."""
    sparse_directory = working_directory.with_name(f"{working_directory.name}-sparse")
    templates = ("--templates", POSTCARDS / "templates.toml", "--max-iterations", "3")
    tune(POSTCARDS, working_directory, options)
    tune(POSTCARDS, sparse_directory, [*templates, *options])
    print("translating held-out text with each result ...", flush=True)
    systems = []
    for name, directory in (("dense", working_directory), ("sparse", sparse_directory)):
        output = directory / "test.out"
        output.write_bytes(translate(POSTCARDS, directory / "moses.ini"))
        systems.append(f"{name}={output}")
    run("compare", [*systems, "--refs", POSTCARDS / "test.english", "--metric", "BLEU"])
    print("The postcards were made unlike the training text: on other text, the gain differs.")


def main() -> None:
    """Tune and compare."""
    words = [word for word in sys.argv[1:] if word != "--sparse"]
    if len(words) == len(sys.argv[1:]):
        tune_demo(Path(words[0] if words else DEMO / "tuned").absolute(), words[1:])
    else:
        tune_postcards(Path(words[0] if words else POSTCARDS / "tuned").absolute(), words[1:])


if __name__ == "__main__":
    main()
