"""Tunes the demo system with ``mosesplug tune``, then translates held-out text with the weights of
before and after and scores both with sacrebleu. With ``--sparse``, it also tunes the system with
the sparse features of ``sparse.toml``."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import sacrebleu

DEMO = Path(__file__).resolve().parent
PROGRAMS = Path(sysconfig.get_path("scripts"))
DECODER = PROGRAMS / "mosesplug-decoder"
THREADS = str(os.cpu_count() or 1)


def tune(working_directory: Path, options: list[str]) -> None:
    """Run the command that a user would run, with any further options."""
    command = [
        *(PROGRAMS / "mosesplug", "tune", DEMO / "tune.tarvian", DEMO / "tune.english"),
        *(DECODER, DEMO / "moses.ini", "--working-dir", working_directory),
        *("--decoder-flags", f"-threads {THREADS}", "--seed", "1", "--overwrite"),
        *options,
    ]
    words = [str(word) for word in command]
    print(f"$ {shlex.join(words)}", flush=True)
    done = subprocess.run(words, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def held_out_bleu(config: Path) -> float:
    """BLEU of the test set, two references, translated with a configuration."""
    words = [DECODER, "-config", config, "-input-file", "test.tarvian", "-threads", THREADS]
    # The configurations name the tables by relative paths, as Moses' own samples do.
    done = subprocess.run(words, check=False, capture_output=True, cwd=DEMO)
    if done.returncode:
        sys.exit(done.stderr.decode(errors="replace") or done.returncode)
    references = [(DEMO / f"test.english{i}").read_text().splitlines() for i in (0, 1)]
    hypotheses = done.stdout.decode().splitlines()
    return float(sacrebleu.corpus_bleu(hypotheses, references, tokenize="none").score)


def main() -> None:
    """Tune and compare."""
    words = [word for word in sys.argv[1:] if word != "--sparse"]
    is_sparse = len(words) < len(sys.argv[1:])
    working_directory = Path(words[0] if words else DEMO / "tuned").absolute()
    sparse_directory = working_directory.with_name(f"{working_directory.name}-sparse")
    tune(working_directory, words[1:])
    if is_sparse:
        tune(sparse_directory, ["--templates", str(DEMO / "sparse.toml"), *words[1:]])
    print("translating held-out text with the old and the new weights ...", flush=True)
    before = held_out_bleu(DEMO / "moses.ini")
    after = held_out_bleu(working_directory / "moses.ini")
    print(f"held-out BLEU before tuning  {before:.2f}")
    print(f"held-out BLEU after tuning   {after:.2f}")
    if is_sparse:
        with_sparse = held_out_bleu(sparse_directory / "moses.ini")
        print(f"held-out BLEU with sparse features   {with_sparse:.2f}")
        print("No gain is expected: sparse features need thousands of sentences, the demo has 200.")


if __name__ == "__main__":
    main()
