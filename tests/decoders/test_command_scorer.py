"""Commands that keep running and score: what they read and answer, and what is kept."""

from __future__ import annotations

import gc
import pickle
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug.decoders.command_scorer import CommandScorer
from mosesplug.decoders.score_program import ScoreProgramCall
from mosesplug.errors import DataError
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.metrics.outside import MEAN, RATIO, Question
from mosesplug.metrics.registry import find_formula

SCORER = Path(__file__).parent / "stand_in_scorer.py"
TEXTS = [b"the house", b"a house", b"the mouse", b"it", b"yes it is", b"a \xff mouse"]
QUESTIONS = [
    Question(k, b"source %d" % k, text, (b"the house is",)) for k, text in enumerate(TEXTS)
]
SHARES = [[1.0], [0.5], [0.5], [0.0], [1 / 3], [0.0]]


def call(place: Path, behavior: str = "right", **changes: Any) -> ScoreProgramCall:
    words = (sys.executable, "-IS", str(SCORER), str(place / "log"), behavior)
    settings = {"format": "json", "batch": 2, "patience": 20.0, "formula": None, **changes}
    return ScoreProgramCall("COMET", words, place, cache=place / "scores", **settings)


def scored(place: Path) -> list[str]:
    log = place / "log"
    return log.read_text().splitlines() if log.exists() else []


def test_each_text_is_scored_once(tmp_path: Path) -> None:
    scorer = CommandScorer(call(tmp_path))
    assert (scorer.version, scorer.formula) == ("scorer 1", MEAN)
    twice = [*QUESTIONS, QUESTIONS[0], QUESTIONS[1]._replace(sentence=7)]
    assert scorer.score(twice).tolist() == [*SHARES, SHARES[0], SHARES[1]]
    assert len(scored(tmp_path)) == len(QUESTIONS)
    assert scored(tmp_path)[0] == "0\tsource 0\tthe house"
    assert scorer.score(QUESTIONS[::-1]).tolist() == SHARES[::-1]
    assert (scorer.n_asked, scorer.n_known) == (6, 0)
    # Another source or reference is another text.
    scorer.score([QUESTIONS[0]._replace(source=b"other"), QUESTIONS[0]._replace(source=None)])
    scorer.score([QUESTIONS[0]._replace(references=(b"the", b"house is"))])
    assert len(scored(tmp_path)) == len(QUESTIONS) + 3


def test_another_process_knows_what_was_scored(tmp_path: Path) -> None:
    CommandScorer(call(tmp_path)).score(QUESTIONS[:4])
    again = pickle.loads(pickle.dumps(CommandScorer(call(tmp_path, batch=100))))
    assert again.score(QUESTIONS).tolist() == SHARES
    assert (again.n_asked, again.n_known) == (2, 4)


def test_versions_do_not_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CommandScorer(call(tmp_path)).score(QUESTIONS)
    monkeypatch.setenv("SCORER_VERSION", "2")
    newer = CommandScorer(call(tmp_path))
    assert newer.version == "scorer 2"
    newer.score(QUESTIONS)
    assert len(scored(tmp_path)) == 2 * len(QUESTIONS)


def test_two_numbers_are_a_ratio(tmp_path: Path) -> None:
    scorer = CommandScorer(call(tmp_path, "ratio"))
    assert scorer.formula == RATIO
    assert scorer.score(QUESTIONS[:2]).tolist() == [[2.0, 2.0], [1.0, 2.0]]
    with pytest.raises(DataError, match=r"announces 2 numbers.*mean takes 1"):
        CommandScorer(call(tmp_path, "ratio", formula=MEAN))
    unmarked = CommandScorer(call(tmp_path, "tsv", formula=RATIO, format="tsv"))
    with pytest.raises(DataError, match=r"answered '0.5' to sentence 2, 'the mouse'.*2 finite"):
        unmarked.score(QUESTIONS)


def test_statistics_of_a_metric(tmp_path: Path) -> None:
    formula = find_formula("BLEU")
    scorer = CommandScorer(call(tmp_path, "bleu", formula=formula))
    counted = formula.metric
    assert counted is not None
    references = [[question.references[0] for question in QUESTIONS]]
    texts = HypothesisRanges.of_lines(TEXTS, np.arange(len(TEXTS)))
    expected = counted.statistics(counted.prepare(references), *texts)
    assert scorer.score(QUESTIONS).tolist() == expected.tolist()
    wrong = CommandScorer(call(tmp_path, "above ratio", formula=find_formula("GLEU")))
    with pytest.raises(
        DataError, match=r"answered '9 2' to sentence 3, 'it': match is above total"
    ):
        wrong.score([question._replace(source=b"new") for question in QUESTIONS])
    with pytest.raises(
        DataError, match=r"announces 2 numbers .*PER takes 3 numbers \(correct, len"
    ):
        CommandScorer(call(tmp_path, "ratio", formula=find_formula("PER")))


def test_plain_lines(tmp_path: Path) -> None:
    columns = CommandScorer(call(tmp_path, "tsv", format="tsv"))
    assert columns.score(QUESTIONS[:5]).tolist() == SHARES[:5]
    assert scored(tmp_path)[1] == "1\tsource 1\ta house"
    with pytest.raises(DataError, match=r"sentence 0 has a tab.*--score-format json"):
        columns.score([Question(0, b"a\tb", b"c", ())])
    (tmp_path / "lines").mkdir()
    lines = CommandScorer(call(tmp_path / "lines", "lines", format="lines"))
    assert lines.score([Question(3, None, b"a b", ()), Question(4, None, b"", ())]).tolist() == [
        [2.0],
        [0.0],
    ]


@pytest.mark.parametrize(
    ("behavior", "message"),
    [
        ("nan", "answered 'nan' to sentence 3, 'it'. Each answer must be 1 finite number"),
        ("text", "answered 'no idea' to sentence 3, 'it'"),
        ("few", "wrote nothing for 1 s after 3 of 4 answers, at sentence 3, 'it'"),
        ("many", "wrote '0.0' after 4 answers, more than it was asked for"),
        ("dies", "ended with exit code 3 after 0 of 4 answers, at sentence 0, 'the house'"),
        ("killed", "was killed by SIGKILL after 0 of 4 answers"),
        ("hangs", "wrote nothing for 1 s after 0 of 4 answers"),
    ],
)
def test_bad_answers(tmp_path: Path, behavior: str, message: str) -> None:
    good = CommandScorer(call(tmp_path))
    good.score(QUESTIONS[4:])
    wrong = CommandScorer(call(tmp_path, behavior, batch=4, patience=1.0))
    with pytest.raises(DataError) as caught:
        wrong.score(QUESTIONS)
    assert f"the score command COMET {message}" in str(caught.value)
    assert "command: " in str(caught.value)
    assert ("out of memory" in str(caught.value)) == (behavior == "dies")
    # Each command has its own file of messages, which is kept after an error only.
    errors = tmp_path / "scores" / "COMET.err"
    assert str(errors) in str(caught.value)
    assert len([*errors.parent.glob("*.err")]) == 2
    # Nothing of that batch was kept, and all that came before it.
    assert good.score(QUESTIONS).tolist() == SHARES
    assert (good.n_asked, good.n_known) == (2 + 4, 0)
    del good
    gc.collect()
    assert [*errors.parent.glob("*.err")] == [errors]


def test_a_command_that_is_not_ready(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"wrote 'Loading the model' before it was ready"):
        CommandScorer(call(tmp_path, "early"))
    for line, message in (
        ('{"version": "1", "numbers": [2]}', r"announces \[2\] numbers for each hypothesis.*1.*2"),
        ('{"version": null}', "before it was ready. Its first line must be"),
    ):
        with pytest.raises(DataError, match=message):
            CommandScorer(replace(call(tmp_path), words=("echo", line)))
    began = time.monotonic()
    with pytest.raises(DataError, match=r"wrote nothing for 0.5 s before it was ready"):
        CommandScorer(call(tmp_path, "silent", patience=0.5))
    assert time.monotonic() - began < 30
    with pytest.raises(DataError, match="ended with exit code 1 before it was ready"):
        CommandScorer(ScoreProgramCall("X", ("false",), tmp_path, "json", 1, 9.0, cache=tmp_path))
    with pytest.raises(DataError, match="no-such-program: No such file"):
        CommandScorer(
            ScoreProgramCall("X", ("no-such-program",), tmp_path, "json", 1, 9.0, cache=tmp_path)
        )


def test_batches_larger_than_pipes(tmp_path: Path) -> None:
    questions = [Question(k, b"s", b"word " * 300 + b"%d" % k, (b"word",)) for k in range(500)]
    scorer = CommandScorer(call(tmp_path, batch=1000))
    assert scorer.score(questions).tolist() == [[300 / 301]] * 500
