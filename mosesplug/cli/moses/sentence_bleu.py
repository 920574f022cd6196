"""``sentence-bleu``, ``sentence-bleu-nbest``: print smoothed BLEU per line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from mosesplug.cli.moses.arguments import Program, ProgramArguments, run
from mosesplug.cores import usable_cores
from mosesplug.errors import DataError, UsageError

OF_LINES = Program(
    "sentence-bleu",
    "Print the smoothed BLEU of each line of the standard input.",
    ProgramArguments,
    others="REFERENCE ... < TRANSLATION",
)
OF_LIST = Program(
    "sentence-bleu-nbest",
    "Print the smoothed BLEU of each hypothesis of an n-best list on the standard input.",
    ProgramArguments,
    others="REFERENCE ... < LIST",
    notes="The first sentence of the list belongs to the first line of the references, whatever\n"
    "its id; sentence ids must be consecutive.",
)


_MOST_DIGITS = 18
"""Maximum number of digits of a sentence id, so that it fits an int64."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``sentence-bleu`` and exit."""
    run(OF_LINES, score_lines, arguments)


def main_nbest(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``sentence-bleu-nbest`` and exit."""
    run(OF_LIST, score_list, arguments)


def score_lines(arguments: ProgramArguments) -> None:
    """Print the score of each line."""
    _check(arguments)
    lines = _input()
    _print_scores(arguments, lines, list(range(len(lines))))


def score_list(arguments: ProgramArguments) -> None:
    """Print the score of each hypothesis.

    Raises:
        DataError: a line does not belong to an n-best list, or sentences are missing.
    """
    _check(arguments)
    texts: list[bytes] = []
    sentences: list[int] = []
    first = previous = -1
    for number, line in enumerate(_input(), start=1):
        fields = line.split(b" ||| ")
        identifier = fields[0].strip()
        if len(fields) < 2 or not identifier.isdigit() or len(identifier) > _MOST_DIGITS:
            raise DataError(
                f"line {number} of the input is not a line of an n-best list: it must begin with"
                " 'number ||| text'"
            )
        sentence = int(identifier)
        if not texts:
            first = previous = sentence
        if sentence not in (previous, previous + 1):
            raise DataError(
                f"line {number} of the input has sentence {sentence} after {previous}: sentence"
                " ids must be consecutive, since each list belongs to the next reference line"
            )
        previous = sentence
        texts.append(fields[1])
        sentences.append(sentence - first)
    _print_scores(arguments, texts, sentences)


def _check(arguments: ProgramArguments) -> None:
    if not arguments.others:
        raise UsageError("name at least one reference")


def _input() -> list[bytes]:
    lines = sys.stdin.buffer.read().split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def _print_scores(
    arguments: ProgramArguments, lines: Sequence[bytes], sentences: Sequence[int]
) -> None:
    """Print one score per line with six significant digits."""
    # Imported here: these import NumPy and Numba, which --help does not need.
    import numpy as np

    from mosesplug.metrics.hypotheses import HypothesisRanges
    from mosesplug.moses_tools.scoring import Scorer
    from mosesplug.results.scores.scores import sentence_bleu

    scorer = Scorer.load("BLEU", "", arguments.others)
    if sentences and sentences[-1] >= scorer.n_sentences:
        raise DataError(
            f"the input has {sentences[-1] + 1} sentences, but the references have"
            f" {scorer.n_sentences} lines"
        )
    hypotheses = HypothesisRanges.of_lines(lines, np.array(sentences, dtype=np.int64))
    scores = sentence_bleu(scorer.statistics(hypotheses, threads=usable_cores()))
    sys.stdout.write("".join(f"{score:.6g}\n" for score in scores.tolist()))
