"""The toy decoder, and what can go wrong with a decoder, as a file says.

    faulty_decoder.py FAULT PROGRAM ...     runs another decoder in Python as FAULT, a file, says

It needs the standard library only. Where the file is missing the decoder works; else its words are
names in ``BEFORE`` or ``FAULTS``; or for a server a behavior of ``tests/decoders/stand_in.py``,
with its arguments.
"""

from __future__ import annotations

import os
import re
import runpy
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

Lines = list[bytes]

_LM = re.compile(rb"LM0= \S+")
_FOUR = re.compile(rb"(TranslationModel0= \S+ \S+) \S+ ")


def exits() -> None:
    sys.exit("assertion failed: the beam is empty")


def crashes() -> None:
    print("translating line 1", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs() -> None:
    print("translating line 1", file=sys.stderr, flush=True)
    time.sleep(600)


BEFORE: dict[str, Callable[[], None]] = {"exits": exits, "crashes": crashes, "hangs": hangs}
"""What happens in place of decoding."""


def sentence(line: bytes) -> int:
    return int(line.partition(b"|||")[0])


def changed(lines: Lines, number: int, old: bytes, new: bytes) -> Lines:
    """The lines with something else in one of them."""
    assert old in lines[number]
    return [*lines[:number], lines[number].replace(old, new), *lines[number + 1 :]]


def with_value(lines: Lines, number: int, value: bytes) -> Lines:
    """The lines with another value of LM0 in one of them."""
    return [*lines[:number], _LM.sub(rb"LM0= " + value, lines[number]), *lines[number + 1 :]]


def with_field(lines: Lines, number: int, field: int, value: bytes) -> Lines:
    """The lines with another field in one of them."""
    fields = lines[number].rstrip(b"\n").split(b" ||| ")
    fields[field] = value
    return [*lines[:number], b" ||| ".join(fields) + b"\n", *lines[number + 1 :]]


def other_order(lines: Lines) -> Lines:
    """Return the lines in the order in which threads finish."""
    return sorted(lines, key=lambda line: (sentence(line) + 5) % 7)


def twice(lines: Lines) -> Lines:
    """The first sentence once more at the end."""
    return [*lines, *(line for line in lines if sentence(line) == 0)]


def repeated(lines: Lines) -> Lines:
    """The list of sentence 1 twice in a row."""
    block = [line for line in lines if sentence(line) == 1]
    end = max(number for number, line in enumerate(lines) if sentence(line) == 1) + 1
    return [*lines[:end], *block, *lines[end:]]


REFUSED: dict[str, Callable[[Lines], Lines]] = {
    "empty": lambda lines: [],
    "cut-in-line": lambda lines: [*lines[:-1], lines[-1].rstrip(b"\n")[:-1]],
    "cut-after-line": lambda lines: [line for line in lines if sentence(line) < 4],
    "left-out": lambda lines: [line for line in lines if sentence(line) != 2],
    "nan": lambda lines: with_value(lines, 7, b"nan"),
    "infinite": lambda lines: with_value(lines, 7, b"-inf"),
    "score": lambda lines: with_field(lines, 7, 3, b"nan"),
    "order": other_order,
    "twice": twice,
    "too-many": lambda lines: [*lines, lines[-1].replace(lines[-1].split()[0], b"99", 1)],
    "fewer-features": lambda lines: [_FOUR.sub(rb"\1 ", line) for line in lines],
    "other-names": lambda lines: [line.replace(b"LM0= ", b"KENLM0= ") for line in lines],
    "other-in-line": lambda lines: changed(lines, 7, b"LM0= ", b"KENLM0= "),
    "no-fields": lambda lines: with_field(lines, 7, 1, b"a ||| b ||| c"),
    "binary": lambda lines: [*lines[:7], bytes(range(256)), *lines[7:]],
    "sentence-number": lambda lines: with_field(lines, 7, 0, b"x1"),
}
"""Lists that cannot be used."""

ACCEPTED: dict[str, Callable[[Lines], Lines]] = {
    "latin-1": lambda lines: [line.replace(b" hund", b" h\xfcnd\xff") for line in lines],
    "long-lines": lambda lines: [with_field([lines[0]], 0, 1, b"word " * 20_000)[0], *lines[1:]],
    "repeated": repeated,
    "blank-lines": lambda lines: [part for line in lines for part in (line, b"\n")],
}
"""Lists that are odd, and are taken as they are."""

FAULTS = {**REFUSED, **ACCEPTED}


def main() -> None:
    """Decode, and do as the file says."""
    file, program, *words = sys.argv[1:]
    fault = Path(file).read_text().split() if Path(file).exists() else []
    sys.argv = [program, *words]
    announces = "-show-weights" in words
    if announces or not fault:
        runpy.run_path(program, run_name="__main__")
        return
    how, *more = fault
    if how in BEFORE:
        BEFORE[how]()
    if how not in FAULTS:  # a server's
        sys.argv += ["-behave", how, *more]
        runpy.run_path(program, run_name="__main__")
        return
    runpy.run_path(program, run_name="__main__")
    sys.stdout.flush()
    path = Path(words[words.index("-n-best-list") + 1])
    lines = path.read_bytes().splitlines(keepends=True)
    for each in fault:
        lines = FAULTS[each](lines)
    path.write_bytes(b"".join(lines))


if __name__ == "__main__":
    main()
