"""The process of a command that scores hypotheses, such as COMET or a judge.

It writes one line when it is ready, with its version; then it reads one line for each hypothesis,
and writes one line of numbers for each, in order. Lines come in batches; the next one is sent when
all numbers of the last are there. docs/howto/outside-scores.md describes the lines.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import re
import select
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from formats.errors import quote
from mosesplug.decoders.processes.child import Child
from mosesplug.decoders.processes.run import make_error
from mosesplug.errors import DataError, DecoderError, count_noun
from mosesplug.metrics.outside import MEAN, Formula, Question, find_formula_of_width

ScoreFormat = Literal["json", "tsv", "lines"]

_PIECE = 1 << 16
_PAUSE_SECONDS = 0.5
_DYING_SECONDS = 1.0
_LONGEST_VERSION = 200
_VERSION = re.compile(r"[^|\x00-\x1f\x7f]+")
"""A version is a part of a metric's signature, whose parts have ``|`` between them."""


@dataclass(frozen=True)
class ScoreProgramCall:
    """A score command: its command line, and what it reads and writes.

    Attributes:
        name: the metric.
        words: the command line; no shell is used.
        directory: the current directory of the command.
        format: of the lines that it reads.
        batch: most hypotheses that are sent at once.
        patience: seconds in which it must write something.
        formula: None: ``mean`` or ``ratio``, by the number of numbers that it announces.
        cache: directory of the scores that are known, and of the messages of the command. The same
            process may serve several.
        remedy: what messages advise if the command does not get ready.
    """

    name: str
    words: tuple[str, ...]
    directory: Path
    format: ScoreFormat
    batch: int
    patience: float
    formula: Formula | None = None
    cache: Path = field(default=Path(), compare=False)
    remedy: str = field(default="", compare=False)


class ScoreProgram:
    """The process of a command, which is started when it is needed.

    Attributes:
        call: how it is called.
    """

    def __init__(self, call: ScoreProgramCall) -> None:
        self.call = call
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._announced: tuple[str, Formula] | None = None
        self._unread = b""
        self._errors = Path()

    def announce(self) -> tuple[str, Formula]:
        """Return what the command announces: its version, and the formula of its numbers.

        Raises:
            DataError: it does not start, or announces nothing that can be used.
        """
        with self._lock:
            return self._announced or self._start()

    def score(self, questions: Sequence[Question]) -> NDArray[np.float64]:
        """Return the numbers of a batch, float64 ``[n, width]``.

        Raises:
            DataError: the command failed, and was ended; the next call starts it again.
        """
        with self._lock:
            try:
                return self._score_batch(questions)
            except BaseException:
                self.end()  # answers that are still to come belong to no later batch
                raise

    def _start(self) -> tuple[str, Formula]:
        """Start the command if it does not run; return version and formula."""
        if self._child is not None and self._announced is not None:
            return self._announced
        self.end()  # a start that was interrupted
        self._unread = b""
        self.call.cache.mkdir(parents=True, exist_ok=True)
        # Runs may share the directory, and only what this command writes is a sign of its life.
        descriptor, name = tempfile.mkstemp(".err", f"{self.call.name}.", self.call.cache)
        os.close(descriptor)
        self._errors = Path(name)
        try:
            child = Child(
                self._role, self.call.words, self.call.directory, self._errors, talks=True
            )
        except DecoderError as error:
            self._errors.unlink(missing_ok=True)
            ending = f". {self.call.remedy}" if self.call.remedy else ""
            raise DataError(f"the {self._role} does not start: {error.template}{ending}") from None
        for pipe in child.pipes:
            os.set_blocking(pipe.fileno(), False)
        self._child = child
        (line,) = self._exchange(b"", 1, lambda count: " before it was ready")
        announced = self._read_ready_line(line)
        self._reject_unread("before it was asked")
        if self._announced is not None and self._announced != announced:
            raise self._fail(
                f"was started again, and has the version {announced[0]} now, not "
                f"{self._announced[0]}",
                "Scores of two versions cannot be mixed: run the same command again",
            )
        self._announced = announced
        return announced

    def _read_ready_line(self, line: bytes) -> tuple[str, Formula]:
        """Return version and formula."""
        call, text = self.call, line.decode("utf-8", "replace").strip()
        version, numbers = "", None
        if call.format == "json":
            with contextlib.suppress(ValueError):
                record = json.loads(text)
                if isinstance(record, dict):
                    version, numbers = str(record.get("version") or ""), record.get("numbers")
            shown = '{"version": "..."}'
        else:
            word, _, version = text.partition(" ")
            version = version if word == "version" else ""
            shown = "version ..."
        if len(version) > _LONGEST_VERSION or not _VERSION.fullmatch(version):
            raise self._fail(
                f"wrote {quote(line)} before it was ready",
                f"Its first line must be {shown} (at most {_LONGEST_VERSION} characters, no |); "
                "all other messages belong to stderr",
            )
        if numbers is None:
            return version, call.formula or MEAN
        formula = call.formula or find_formula_of_width(numbers)
        if formula is None:
            raise self._fail(
                f"announces {numbers} numbers for each hypothesis",
                "It can have 1, whose mean is the score, or 2, whose sums are divided. For the "
                f"statistics of a metric, name it: {{--score-command}} {call.name}=...:BLEU",
            )
        if formula.width != numbers:
            raise self._fail(
                f"announces {numbers} numbers for each hypothesis, and {formula.name} takes "
                f"{formula.describe()}",
                f"Name what it writes in place of {formula.name}, or change the command",
            )
        return version, formula

    def _score_batch(self, questions: Sequence[Question]) -> NDArray[np.float64]:
        """Return the numbers of a batch."""
        _, formula = self._start()
        data = b"".join(
            self._format(question, len(questions) - place - 1)
            for place, question in enumerate(questions)
        )
        lines = self._exchange(data, len(questions), lambda n: _describe_progress(n, questions))
        self._reject_unread(f"after {count_noun(len(lines), 'answer')}, more than it was asked for")
        width, rows = formula.width, []
        for line, question in zip(lines, questions, strict=True):
            numbers = _read_numbers(line)
            if numbers is None or len(numbers) != width:
                raise self._fail(
                    f"answered {quote(line)} to {_name(question)}",
                    f"Each answer must be {formula.describe().replace(' ', ' finite ', 1)}"
                    f"{'' if width == 1 else ' with a blank between them'}"
                    + (
                        f"; for two numbers, write {{--score-command}} {self.call.name}=...:ratio, "
                        "and for the statistics of a metric its name, such as :BLEU"
                        if width == 1 and numbers is not None
                        else ""
                    ),
                )
            rows.append(numbers)
        values = np.array(rows, dtype=np.float64)
        if (fault := formula.find_fault(values)) is not None:
            row, why = fault
            raise self._fail(
                f"answered {quote(lines[row])} to {_name(questions[row])}: {why}",
                f"{formula.name} takes {formula.describe()}",
            )
        return values

    def _format(self, question: Question, remaining: int) -> bytes:
        """Return the line of a hypothesis."""
        sentence, source, hypothesis, references = question
        if self.call.format == "json":
            record = {
                "id": sentence,
                "source": None if source is None else _decode(source),
                "hypothesis": _decode(hypothesis),
                "references": [*map(_decode, references)],
                "remaining": remaining,
            }
            return json.dumps(record).encode() + b"\n"
        if self.call.format == "lines":
            return hypothesis + b"\n"
        columns = [source or b"", hypothesis, *references]
        if any(b"\t" in column for column in columns):
            raise DataError(
                f"sentence {sentence} has a tab in its texts, which separates the columns that "
                f"{self.call.name} reads: use {{--score-format json}}"
            )
        return b"\t".join([b"%d" % sentence, *columns]) + b"\n"

    def _exchange(self, data: bytes, count: int, where: Callable[[int], str]) -> list[bytes]:
        """Write lines, and return ``count`` lines of answers.

        Args:
            where: returns which of the answers is missing, for messages.

        Raises:
            DataError: there are fewer or more, or none for too long; the command was ended.
        """
        child = self._child
        assert child is not None
        stdin, stdout = (pipe.fileno() for pipe in child.pipes)
        poll = select.poll()
        poll.register(stdout, select.POLLIN)
        self._read_available(poll, stdout)
        if data:
            self._reject_unread("without being asked")
        pending = memoryview(data)
        if pending:
            poll.register(stdin, select.POLLOUT)
        received, n_lines = bytearray(self._unread), self._unread.count(b"\n")
        since, size = time.monotonic(), self._messages_size()
        while n_lines < count or pending:
            is_alive = False
            for descriptor, _ in poll.poll(1000 * min(_PAUSE_SECONDS, self.call.patience)):
                if descriptor == stdin:
                    try:
                        pending = pending[os.write(stdin, pending[:_PIECE]) :]
                    except BrokenPipeError:
                        pending = pending[:0]
                    if not pending:
                        poll.unregister(stdin)
                    is_alive = True
                    continue
                if not (piece := os.read(stdout, _PIECE)):
                    child.ended.wait(_DYING_SECONDS)
                    problem = (child.problem() or "closed its output").removeprefix("the ")
                    raise self._fail(
                        problem.removeprefix(f"{self._role} ") + where(n_lines),
                        self.call.remedy if self._announced is None else "",
                    )
                received += piece
                n_lines += piece.count(b"\n")
                is_alive = True
            written = self._messages_size()
            if is_alive or written != size:
                since, size = time.monotonic(), written
            elif time.monotonic() - since >= self.call.patience:
                raise self._fail(
                    f"wrote nothing for {self.call.patience:g} s{where(n_lines)} and was killed",
                    "It hangs, answers fewer lines than it reads, does not flush its output, or "
                    "needs a longer {--score-timeout}",
                )
        lines = bytes(received).split(b"\n", count)
        self._unread = lines.pop()
        self._read_available(poll, stdout)
        return lines

    def _reject_unread(self, where: str) -> None:
        """Check that the command wrote no more than it was asked for."""
        if self._unread:
            raise self._fail(
                f"wrote {quote(self._unread.splitlines()[0])} {where}",
                "It must write one line for each hypothesis; other messages belong to stderr",
            )

    def _read_available(self, poll: select.poll, stdout: int) -> None:
        """Read what is there, without waiting."""
        with contextlib.suppress(BlockingIOError):
            while poll.poll(0) and (piece := os.read(stdout, _PIECE)):
                self._unread += piece

    def _messages_size(self) -> int:
        """Return the bytes that it wrote to stderr, as a bar of progress does."""
        try:
            return self._errors.stat().st_size
        except OSError:
            return 0

    @property
    def _role(self) -> str:
        return f"score command {self.call.name}"

    def _fail(self, problem: str, remedy: str = "") -> DataError:
        """End the command, and return the error, which names the file of its messages."""
        self._end_child()
        with contextlib.suppress(OSError):  # those of the last error only are kept
            self._errors = self._errors.replace(self.call.cache / f"{self.call.name}.err")
        ending = f". {remedy}" if remedy else ""
        error = make_error(f"the {self._role} {problem}{ending}", self.call.words, self._errors)
        return DataError(error.template)

    def __del__(self) -> None:
        """End the command when nothing scores with it any more."""
        self.end()

    def end(self) -> None:
        """End the command and remove its messages; it is started again if it is needed."""
        if self._end_child():
            self._errors.unlink(missing_ok=True)

    def _end_child(self) -> bool:
        """End the command; return whether it was running."""
        child, self._child = self._child, None
        if child is None:
            return False
        for pipe in child.pipes:
            with contextlib.suppress(OSError):
                pipe.close()
        # A command that has read everything ends by itself, and may say so.
        child.ended.wait(_DYING_SECONDS)
        child.end()
        return True


def _describe_progress(n_answers: int, questions: Sequence[Question]) -> str:
    """Return which answer of a batch is missing."""
    which = min(n_answers, len(questions) - 1)
    return f" after {n_answers} of {len(questions)} answers, at {_name(questions[which])}"


def _decode(text: bytes) -> str:
    """Return a text of JSON, which has no invalid bytes."""
    return text.decode("utf-8", "replace")


def _name(question: Question) -> str:
    return f"sentence {question.sentence}, {quote(question.hypothesis)}"


def _read_numbers(line: bytes) -> list[float] | None:
    """Return the numbers of a line; None if it has others than finite ones."""
    words = line.strip().removeprefix(b"[").removesuffix(b"]").replace(b",", b" ").split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        return None
    # Python reads 1_000 as a number.
    return numbers if b"_" not in line and all(map(math.isfinite, numbers)) else None


_programs: weakref.WeakValueDictionary[ScoreProgramCall, ScoreProgram] = (
    weakref.WeakValueDictionary()
)
_opening = threading.Lock()


def open_program(call: ScoreProgramCall) -> ScoreProgram:
    """Return the program of a call: one for all runs of this process."""
    with _opening:
        program = _programs.get(call)
        if program is None:
            program = _programs[call] = ScoreProgram(call)
        return program


@atexit.register
def _end_programs() -> None:
    for program in list(_programs.values()):
        program.end()
