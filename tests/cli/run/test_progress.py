"""Progress: a changing line on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import io

import pytest

from mosesplug.cli.run.progress import Reporter, list_iterations
from mosesplug.events import (
    CommandStarted,
    DecodingProgress,
    EpochLearned,
    EpochProgress,
    Event,
    GraphsRead,
    HeldOutScored,
    IterationFinished,
    Note,
    OptimizerProgress,
    PhaseStarted,
    RunFinished,
    TextsScored,
)
from mosesplug.results.render.run_lines import format_duration
from mosesplug.results.render.tables import format_blocks
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import Evaluation
from mosesplug.tuning.workdir.summary import IterationFigures, Result

EVENTS: tuple[Event, ...] = (
    Note("hello"),
    Note("look out", is_warning=True),
    PhaseStarted(0, "features"),
    GraphsRead(0, 9, 9),
    CommandStarted(("moses", "-show-weights", "a b")),
    PhaseStarted(1, "decode"),
    DecodingProgress(1, 3, 10, 1.5),
    DecodingProgress(1, 10, 10, 5.0),
    GraphsRead(1, 4, 10),
    PhaseStarted(1, "optimize"),
    OptimizerProgress(1, 2, 20, "starts"),
    IterationFinished(1, "BLEU", 0.25, 0.5, 0.125, 1000),
    PhaseStarted(2, "decode"),
    DecodingProgress(2, 1, 10, 0.5),
    RunFinished(2, "enough"),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *, quiet: bool = False, verbose: bool = False) -> str:
    reporter = Reporter(stream, quiet=quiet, verbose=verbose)
    for event in EVENTS:
        reporter(event)
    reporter.close()
    return stream.getvalue()


def test_scoring_shows_on_a_terminal_unless_the_decoder_decodes() -> None:
    events = [
        DecodingProgress(1, 3, 10, 1.5),
        TextsScored("COMET", 1, 4, 1, 0),
        PhaseStarted(1, "score"),
        TextsScored("COMET", 0, 0, 0, 9),
        TextsScored("COMET", 2, 4, 2, 0),
    ]
    texts = []
    for stream in (Terminal(), io.StringIO()):
        reporter = Reporter(stream)
        for event in events:
            reporter(event)
        texts.append(stream.getvalue())
    assert texts[0].endswith("scoring: 2 of 4 texts by COMET")
    assert texts[0].count("COMET") == 1
    assert "COMET" not in texts[1]


def test_plain_lines() -> None:
    assert shown(io.StringIO()).splitlines() == [
        "hello",
        "warning: look out",
        "[1] decoding: 10 of 10 sentences, 2.0/s",
        "[1] BLEU 0.2500 decoded (1000 hypotheses), 0.5000 in the merged lists; largest change"
        " of a weight 0.12",
        "[2] decoding: 1 of 10 sentences, 2.0/s",
        "finished after iteration 2: enough",
    ]


def test_optima_in_search_graphs() -> None:
    stream = io.StringIO()
    Reporter(stream)(IterationFinished(1, "BLEU", 0.25, 0.5, 0.125, 1000, uses_graphs=True))
    assert "0.2500 decoded (1000 hypotheses), 0.5000 in the graphs; largest" in stream.getvalue()
    weights = Weights((1.0,))
    iteration = IterationFigures(0.25, 10, 1000, 900, 1, 0.5, 0.1, weights, 1.0, 2.0)
    result = Result(
        *(weights, 0, 0.5, ("LM0_0",), "BLEU", "BLEU|x", "mert", 1, "enough", (iteration,)),
        scored_on="graphs",
        uses_graphs=True,
    )
    head, *rest = format_blocks(list_iterations(result)).splitlines()
    assert head.split()[:4] == ["iteration", "BLEU", "in", "graphs"]
    assert "weights: BLEU 0.5000 in the search graphs (enough)" in rest


def test_sign_of_life() -> None:
    stream = io.StringIO()
    reporter = Reporter(stream)
    for seconds in (10.0, 59.0, 61.0, 100.0, 125.0):
        reporter(DecodingProgress(1, int(seconds), 1000, seconds))
    assert [line.split()[2] for line in stream.getvalue().splitlines()] == ["61", "125"]


def test_verbose_shows_commands() -> None:
    assert "running: moses -show-weights 'a b'\n" in shown(io.StringIO(), verbose=True)


def test_terminal() -> None:
    text = shown(Terminal())
    assert "\r\x1b[K[1] decoding: 3 of 10 sentences, 2.0/s" in text
    assert "\x1b[Kreading search graphs: 9 of 9" in text
    assert "[1] reading search graphs: 4 of 10" in text
    assert "[1] optimizing: 2 of 20 starts" in text
    assert "[2] decoding: 1 of 10 sentences, 2.0/s, BLEU so far 0.2500" in text
    assert text.endswith("finished after iteration 2: enough\n")


def test_quiet() -> None:
    assert shown(Terminal(), quiet=True) == ""


def test_interrupted_line_is_cleared() -> None:
    stream = Terminal()
    reporter = Reporter(stream)
    reporter(PhaseStarted(1, "decode"))
    reporter.close()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_table() -> None:
    weights = Weights((1.0,))
    iterations = tuple(
        IterationFigures(0.25 * n, 10, 1000, 900, n, 0.5, 0.1, weights, 1.0, 2.0) for n in (1, 2)
    )
    result = Result(
        *(weights, 2, 0.5, ("LM0_0",), "BLEU", "BLEU|x", "mert", 1, "enough", iterations),
        scored_on="decoded",
    )
    head, first, second, *rest = format_blocks(list_iterations(result)).splitlines()
    assert head.split()[:4] == ["iteration", "BLEU", "in", "lists"]
    assert first.split()[:4] == ["1", "0.2500", "0.5000", "0.1"]
    assert len(head) == len(first) == len(second)
    assert rest == [
        "weights: BLEU 0.5000 decoded in iteration 2 (enough)",
        "signature: BLEU|x",
    ]


def test_learning() -> None:
    stream = io.StringIO()
    reporter = Reporter(stream)
    report = {"updates": 13, "loss": 0.25, "norm": 1.5, "active": 14}
    for event in (
        HeldOutScored(1, 0, "BLEU", 0.3, None),
        EpochProgress(1, 1, 13, "BLEU", 0.2, 1.0),
        EpochProgress(1, 12, 13, "BLEU", 0.25, 61.0),
        EpochLearned(1, "BLEU", 0.26, report, 70.0),
        HeldOutScored(1, 13, "BLEU", 0.4, 0.3),
        HeldOutScored(2, 26, "BLEU", 0.35, 0.4),
    ):
        reporter(event)
    assert stream.getvalue().splitlines() == [
        "[1] held out before learning: BLEU 0.3000",
        "[1] learning: 12 of 13 batches, 6 s left, BLEU so far 0.2500",
        "[1] BLEU 0.2600 while learning, 13 updates, loss 0.25, norm 1.5, 14 weights that are not"
        " 0",
        "[1] held out: BLEU 0.4000, the best so far (before: 0.3000)",
        "[2] held out: BLEU 0.3500; the best is 0.4000",
    ]


def test_table_of_an_online_run() -> None:
    weights = Weights((1.0,))
    curve = ({"loss": 0.5, "norm": 2.0, "active": 3, "updates": 13},)
    held_out = (Evaluation(0, 0.3), Evaluation(13, 0.4))
    one = IterationFigures(0.25, 3, 9, 9, 1, 0.25, 0.1, weights, 1.0, 2.0, curve, held_out)
    result = Result(
        *(weights, 0, 0.4, ("LM0_0",), "BLEU", "BLEU|x", "oro", 1, "enough", (one,)),
        selection="best-heldout",
        is_online=True,
        scored_on="heldout",
    )
    head, first, *rest = format_blocks(list_iterations(result)).splitlines()
    assert head.split() == [
        *("epoch", "BLEU", "loss", "norm", "active", "updates", "decode", "tune", "held", "out")
    ]
    assert first.split() == ["1", "0.2500", "0.5", "2", "3", "13", "1.0", "s", "2.0", "s", "0.4000"]
    assert rest[0] == "weights: BLEU 0.4000 on the held-out text, the best there (enough)"


def test_lines_of_long_searches_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("mosesplug.results.render.run_lines.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    reporter = Reporter(stream)
    reporter(PhaseStarted(1, "optimize"))
    for step in range(1, 9):
        now[0] += 10.0
        reporter(OptimizerProgress(1, step, 20, "climbs"))
    assert stream.getvalue().splitlines() == [
        "[1] optimizing: 3 of 20 climbs, 3 min left",
        "[1] optimizing: 6 of 20 climbs, 3 min left",
    ]


def test_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("mosesplug.results.render.run_lines.time.monotonic", lambda: clock[0])
    stream = io.StringIO()
    reporter = Reporter(stream, most_iterations=4)
    for number in (1, 2, 4):
        reporter(PhaseStarted(number, "decode"))
        reporter(DecodingProgress(number, 10, 100, 60.0))  # a sign of life
        clock[0] += 200.0
        reporter(DecodingProgress(number, 100, 100, 200.0))
        reporter(PhaseStarted(number, "optimize"))
        clock[0] += 40.0
        reporter(OptimizerProgress(number, 1, 20, "starts"))
        reporter(IterationFinished(number, "BLEU", 0.25, 0.5, 0.125, 1000))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "[1] decoding: 10 of 100 sentences, 0.2/s, 9 min left"
    assert lines[1] == "[1] decoding: 100 of 100 sentences, 0.5/s"
    assert lines[3] == "[1] optimizing: 1 of 20 starts, 13 min left"
    ends = [line.rpartition("; ")[2] for line in lines if "decoded" in line]
    assert ends == [
        "at most 12 min left",
        "at most 8 min left",
        "largest change of a weight 0.12",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (99.0, "99 s"), (100.0, "2 min"), (5940.0, "99 min"), (6000.0, "2 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_waiting_for_compilation() -> None:
    for stream, text in ((Terminal(), "compiling (once) ..."), (io.StringIO(), "")):
        Reporter(stream).show_compiling(True)
        assert stream.getvalue().endswith(text)
        assert bool(stream.getvalue()) == bool(text)
