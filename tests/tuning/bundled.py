"""The bundled decoder on the first sentences of the demo system."""

from __future__ import annotations

import gzip
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

from mosesplug.extras.phrase_decoder.phrase_table import source_phrases
from tests.real_decoder.system import cut_language_model

DEMO = Path(__file__).parents[2] / "moses-config" / "demo"
BUNDLED_PROGRAM = (
    f"#!/bin/sh\nexec {sys.executable} -c "
    '"from mosesplug.extras.phrase_decoder.program import main; main()" "$@"\n'
)
_LONGEST_PHRASE = 20
_FILES = {"-n-best-list": 1, "-output-search-graph-hypergraph": 3, "-weight-file": 1}


def write_bundled_decoder(path: Path) -> Path:
    """Write the decoder as a program, and return its path."""
    path.write_text(BUNDLED_PROGRAM)
    path.chmod(0o755)
    return path


def write_demo_sentences(directory: Path, count: int) -> None:
    """Write the first lines of the tuning set to the files ``tarvian`` and ``english``."""
    for name in ("tarvian", "english"):
        lines = (DEMO / f"tune.{name}").read_bytes().splitlines(keepends=True)
        (directory / name).write_bytes(b"".join(lines[:count]))


def write_demo_config(directory: Path) -> Path:
    """Write a system that has what the sentences in ``tarvian`` need; return its configuration."""
    write_demo_tables(directory, (directory / "tarvian").read_bytes().splitlines())
    with gzip.open(directory / "phrase-table.gz", "rt") as table:
        known = {word for line in table for word in line.split(" ||| ")[1].split()}
    cut_language_model(DEMO, directory, known)
    path = directory / "demo.ini"
    shutil.copyfile(DEMO / "moses.ini", path)
    return path


def write_demo_tables(directory: Path, sentences: Iterable[bytes]) -> None:
    """Write the lines of the demo system's tables that a decoder keeps for the sentences."""
    phrases = source_phrases((sentence.split() for sentence in sentences), _LONGEST_PHRASE)
    for name in ("phrase-table.gz", "reordering-table.gz"):
        lines = gzip.decompress((DEMO / name).read_bytes()).splitlines(keepends=True)
        kept = (line for line in lines if line.partition(b" ||| ")[0] in phrases)
        (directory / name).write_bytes(gzip.compress(b"".join(kept)))


def call_bundled_decoder(
    arguments: Sequence[str], directory: str, out: TextIO, err: TextIO
) -> None:
    """Do what the program does in a directory; one thread at a time may call this."""
    from mosesplug.extras.phrase_decoder import program  # sets a variable of the environment

    words = list(arguments)
    for flag, place in _FILES.items():
        if flag in words:
            position = words.index(flag) + place
            words[position] = str(Path(directory, words[position]))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            program.main(words)
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"the decoder ended with {end.code}") from end
