"""Everything that can go wrong with a decoder, done to a tuning run; prints what its user sees.

    python -m tests.long_running.decoder_faults

The decoder decodes once as it should, then a fault comes, then it is mended and the run continued.
What is printed is a table in Markdown: the fault, the beginning of that run's message, whose later
lines have the command and the decoder's last words, and what was kept.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from mosesplug.cli.main import main as mosesplug
from mosesplug.results.views.maintenance import verify_store
from mosesplug.store import NBestStore

HERE = Path(__file__).parent
FAULTY = HERE / "faulty_decoder.py"
TOY = HERE.parent / "data" / "toy" / "decoder.py"
STAND_IN = HERE.parent / "decoders" / "stand_in.py"

_SENTENCES = 6
_SHOWN = 130
"""Characters of a message."""
_SHARED = ["--seed=5", "--threads=1", "--nbest=10", "--quiet", "--min-change=0"]
_BATCH = ["--max-iterations=2", "--algorithm=mert", "--option=restarts=1"]
_ONLINE = ["--online", "--online-decoder=server", "--algorithm=mira", "--epochs=2"]
_ONLINE += ["--option=batch=2"]


@dataclass(frozen=True)
class Fault:
    """A fault, and what must be said of it.

    Attributes:
        what: in words, for the table.
        how: as ``faulty_decoder.py`` spells it.
        said: words that the message must have.
        server: whether the decoder is kept running as a server.
        timeout: a value for --decoder-timeout, or none.
    """

    what: str
    how: str
    said: tuple[str, ...] = ()
    server: bool = False
    timeout: float = 0.0


FAULTS = (
    Fault("ends with an exit code", "exits", ("ended with exit code 1", "the beam is empty")),
    Fault("crashes", "crashes", ("was killed by SIGSEGV", "\ntranslating line 1\n")),
    Fault("hangs", "hangs", ("wrote nothing for 1 s and was killed", "translating"), timeout=1.0),
    Fault("writes an empty list", "empty", ("wrote no n-best list",)),
    Fault("is stopped within a line", "cut-in-line", ("best10.out is cut off", "last line")),
    Fault("is stopped after a line", "cut-after-line", ("lists of 4 of 6 sentences", "4, 5")),
    Fault("leaves a sentence out", "left-out", ("of 5 of 6 sentences", "left out sentence 2")),
    Fault("gives NaN as a feature", "nan", ("run2.best10.out.gz:8:", "nan")),
    Fault("gives infinity as a feature", "infinite", ("run2.best10.out.gz:8:", "inf")),
    Fault("gives NaN as a score", "score", ("run2.best10.out.gz:8:", "nan")),
    Fault("puts sentences out of order", "order", ("sentence ids go backwards", "sort -s -n")),
    Fault("gives a sentence a second list", "twice", ("sentence ids go backwards (0 after 5)",)),
    Fault("gives more sentences than it got", "too-many", ("has sentence 99", "has only 6")),
    Fault(
        "has another number of features",
        "fewer-features",
        ("other features", "TranslationModel0*2", "instead of", "TranslationModel0*3"),
    ),
    Fault("has features of other names", "other-names", ("other features", "KENLM0")),
    Fault("has other features in one line", "other-in-line", ("run2.best10.out.gz:8:", "KENLM0")),
    Fault("writes a line of too many fields", "no-fields", ("run2.best10.out.gz:8:",)),
    Fault("writes something binary", "binary", ("run2.best10.out.gz:9:",)),
    Fault("numbers sentences oddly", "sentence-number", ("run2.best10.out.gz:8:", "'x1'")),
    Fault("as a server dies, and again", "dies-at", ("exit code 3", "last words"), True),
    Fault("as a server drops the connection", "drops-at", ("the connection", "broke"), True),
    Fault("as a server does not answer", "sleeps-at", ("not answer within 2 s",), True, 2.0),
    Fault("as a server answers garbage", "garbage-at", ("not XML-RPC",), True),
    Fault("as a server refuses", "refuses-at", ("refused: no such word",), True),
    Fault("as a server answers something else", "number-at", ("another structure",), True),
)


@dataclass(frozen=True)
class System:
    """A toy to tune, in a directory, with a decoder that does what the file ``fault`` says."""

    directory: Path
    server: bool

    def arguments(self, work: Path, *words: str) -> list[str]:
        """The command line of ``mosesplug`` for a run in a working directory."""
        files = (self.directory / name for name in ("input", "reference", "decoder", "moses.ini"))
        regime = _ONLINE if self.server else _BATCH
        return ["tune", *map(str, files), f"--working-dir={work}", *_SHARED, *regime, *words]

    def breaks(self, how: str | None) -> None:
        """Have the decoder misbehave, or mend it."""
        path = self.directory / "fault"
        path.unlink(missing_ok=True)
        if how is not None:
            path.write_text(f"{how} sechs" if self.server else how)


def make_system(directory: Path, *, server: bool = False) -> System:
    """A system of six sentences; with ``server``, one whose decoder can be one."""
    directory.mkdir(parents=True, exist_ok=True)
    if server:
        words = [
            "eins",
            "zwei",
            "drei",
            "vier",
            "acht",
            "neun",
            "zehn",
            "elf",
            "null",
            "ein",
            "ein",
        ]
        # The fault comes with the last sentence, which is not among those that a server is tried
        # with when a run begins.
        text = "".join(f"{word} mal drei ist {word}\n" for word in words) + "vier mal sechs\n"
        (directory / "input").write_text(text)
        (directory / "reference").write_text(text)
        (directory / "moses.ini").write_text(
            "[feature]\nLM\nTM num-features=2 tuneable-components=true,false\n"
            "[weight]\nLM0= 1\nTM0= 0.5 2\n"
        )
    else:
        make = [sys.executable, "-IS", str(TOY), "--make", str(directory), str(_SENTENCES)]
        subprocess.run(make, check=True)
    program = STAND_IN if server else TOY
    words = [sys.executable, "-IS", str(FAULTY), str(directory / "fault"), str(program)]
    (directory / "decoder").write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    (directory / "decoder").chmod(0o755)
    return System(directory, server)


def run(words: list[str]) -> tuple[int, str]:
    """Run ``mosesplug`` in this process; return its exit code and stderr."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            mosesplug(words)
        except SystemExit as end:
            code = end.code
    return int(code or 0), said.getvalue()


def kept(work: Path) -> tuple[int, int]:
    """Finished iterations of a run, and sentences of the mini-batches after them.

    Raises:
        AssertionError: a record is not what it was.
    """
    for found in verify_store(work / "nbests.lmdb"):
        assert not found.faults
    with NBestStore.open(work / "nbests.lmdb") as store:
        opened = store.open_iteration()
        finished = sum(record.result is not None for record in store.iterations())
        return finished, 0 if opened is None else len(opened.sentences)


@dataclass(frozen=True)
class Outcome:
    """What came of a fault.

    Attributes:
        code, said: of the run that met it.
        kept: as ``kept`` counts after it.
        same: whether the run, continued with the decoder mended, ends as if nothing had been.
    """

    code: int
    said: str
    kept: tuple[int, int]
    same: bool


def outcome(system: System, fault: Fault, begun: Path, whole: bytes | None, work: Path) -> Outcome:
    """Let a fault come in the second decoding, or its first batches; then mend the decoder.

    Args:
        system: to tune.
        fault: to come.
        begun: working directory of a run that has done what comes before.
        whole: the result of a run that met no fault; None not to go on after the fault.
        work: a directory for this one.
    """
    shutil.copytree(begun, work)
    system.breaks(fault.how)
    limit = [f"--decoder-timeout={fault.timeout:g}"] if fault.timeout else []
    code, said = run(system.arguments(work, "--continue", *limit))
    system.breaks(None)
    left = kept(work)
    if whole is None:
        return Outcome(code, said, left, True)
    mended, _ = run(system.arguments(work, "--continue"))
    return Outcome(code, said, left, mended == 0 and result_of(work) == whole)


def result_of(work: Path) -> bytes:
    """The tuned weights of a run, as its configuration has them."""
    weights = (work / "moses.ini").read_bytes().partition(b"[weight]")[2]
    return weights.replace(str(work).encode(), b"WORK")


def begin(system: System, work: Path) -> None:
    """The first iteration of a run."""
    code, said = run(system.arguments(work, "--max-iterations=1"))
    assert code == 0, said


def whole(system: System, work: Path) -> bytes:
    """The result of a run without a fault."""
    code, said = run(system.arguments(work))
    assert code == 0, said
    return result_of(work)


def row(fault: Fault, met: Outcome, directory: Path) -> str:
    """A line of the table."""
    message = met.said.partition("\n")[0].replace(f"{directory}/", "").replace("|", "\\|")
    message = shorten(re.sub(r"^mosesplug: ", "", message), _SHOWN, placeholder=" ...")
    finished, sentences = met.kept
    iterations = f"{finished} iteration{'s' * (finished != 1)}"
    what = f"{iterations}, {sentences} sentences of the next" if sentences else iterations
    after = "" if met.same else "; CONTINUED, IT ENDS OTHERWISE"
    return f"| {fault.what} | {met.code}: `{message}` | {what}{after} |"


def main() -> None:
    """Print the table."""
    print("| the decoder | exit code and beginning of the message | kept |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for server in (False, True):
            directory = Path(name) / str(server)
            system = make_system(directory, server=server)
            expected = whole(system, directory / "whole")
            begin(system, directory / "begun")
            for fault in (fault for fault in FAULTS if fault.server == server):
                work = directory / fault.how
                met = outcome(system, fault, directory / "begun", expected, work)
                print(row(fault, met, work), flush=True)


if __name__ == "__main__":
    main()
