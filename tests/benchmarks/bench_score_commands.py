"""Hypotheses a minute through the pipe of a score command that answers at once.

    python -m tests.benchmarks.bench_score_commands [--texts 20000] [--references 1]

The command parses JSON, or takes lines as they are, and answers a constant. So all that takes time
is the pipe: look texts up, write lines, read answers, keep them. It flushes its output after each
batch of JSON lines, and else after each line. The rows ``known`` ask again for the same texts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from mosesplug.decoders.command_scorer import CommandScorer
from mosesplug.decoders.score_program import ScoreFormat, ScoreProgramCall
from mosesplug.metrics.outside import Question

_WORDS = 20
_COMMAND = """\
import json, sys
is_json = sys.argv[1] == "json"
print('{"version": "constant"}' if is_json else "version constant", flush=True)
for line in sys.stdin:
    print(0.5, flush=not is_json or json.loads(line)["remaining"] == 0)
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--references", type=int, default=1)
    options = parser.parse_args()
    questions = make_questions(options.texts, options.references)
    print("format  batch  texts      seconds  texts a minute")
    formats: tuple[ScoreFormat, ...] = ("json", "tsv", "lines")
    for form in formats:
        for batch in (256, 4096):
            with tempfile.TemporaryDirectory() as place:
                scorer = CommandScorer(make_call(Path(place), form, batch))
                for what in ("new", "known"):
                    began = time.perf_counter()
                    scorer.score(questions)
                    seconds = time.perf_counter() - began
                    print(
                        f"{form:<6}  {batch:>5}  {what:<9}  {seconds:7.2f}  "
                        f"{60 * len(questions) / seconds:14,.0f}",
                        flush=True,
                    )
                del scorer  # ends the command


def make_questions(count: int, n_references: int) -> list[Question]:
    """Return different hypotheses, a hundred of each sentence."""
    words = b" ".join(b"word%d" % number for number in range(_WORDS))
    return [
        Question(
            number // 100,
            b"%d %b" % (number // 100, words),
            b"%b %d" % (words, number),
            (b"%b %d" % (words, number // 100),) * n_references,
        )
        for number in range(count)
    ]


def make_call(place: Path, form: ScoreFormat, batch: int) -> ScoreProgramCall:
    """Return a command that reads this format."""
    words = (sys.executable, "-IS", "-c", _COMMAND, form)
    return ScoreProgramCall("CONSTANT", words, place, form, batch, 60.0, cache=place)


if __name__ == "__main__":
    main()
