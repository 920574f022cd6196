"""Forced decoding and weights of domains with the real decoder."""

from __future__ import annotations

import numpy as np
import pytest

from formats.nbest.files import read_nbest
from formats.weights.any_format import read_weights
from formats.weights.files import read_sparse
from mosesplug.features import FeatureSpace
from mosesplug.results.analysis.search_errors import exceeds, find_search_errors
from mosesplug.tuning.domains import list_domain_weights
from mosesplug.tuning.weights import Weights
from tests.real_decoder.programs import NBEST, Programs

LABELS = ["talks", "news", "talks", "news"]
BEAM = "-threads 1 -v 0 -s 30"
ONE = ("--algorithm", "kbmira", "--option", "epochs=2", "--max-iterations", "1")


@pytest.fixture
def few(programs: Programs) -> Programs:
    """The first four sentences only."""
    return programs.shorten(len(LABELS))


def test_derivations_of_references(few: Programs, capfd: pytest.CaptureFixture[str]) -> None:
    """The decoder yields its own translations, also with words that it copies."""
    system = few.system
    first, _, *others = system.source.read_text().splitlines(keepends=True)
    assert "baumwolle" in first
    system.source.write_text("".join([first, first, *others]))
    # With a low limit of cube pruning, Moses may miss a derivation, and not in every run.
    output = few.decode("-config", system.config, *BEAM.split(), "-input-file", system.source)
    references = [" ".join(line.split()) for line in output.decode().splitlines()]
    assert "baumwolle" in references[1]
    references[1] = references[1].replace("baumwolle", "cotton")
    references[2] = "another reference"
    system.reference.write_text("".join(f"{line}\n" for line in references))
    work = few.tune("work", "--forced-decoding", *ONE, "--decoder-flags", BEAM)
    assert "forced decoding: 2 of 4 sentences can yield a reference" in capfd.readouterr().err
    forced, merged = (
        read_nbest(work / f"run1.{name}.out.gz") for name in ("forced.best", f"best{NBEST}")
    )
    assert forced.sentence_ids.tolist() == [0, 3]
    for row, number in enumerate([0, 3]):
        last = np.flatnonzero(merged.sentence_ids == number)[-1]
        texts = forced.text(row).decode(), merged.text(int(last)).decode()
        assert texts == (references[number], references[number])
    # The references are what the same search translates to.
    errors = find_search_errors([work], system.reference)
    assert [row.kind for row in errors.rows] == [
        "no error", "unreachable", "unreachable", "no error"
    ]  # fmt: skip
    for row, number in enumerate([0, 3]):
        judged = errors.rows[number]
        assert not exceeds(forced.scores[row], judged.best_score or 0.0)


def test_weights_of_domains(few: Programs) -> None:
    """The second iteration scores each sentence with the weights of its domain."""
    labels = few.directory / "labels"
    labels.write_text("".join(f"{label}\n" for label in LABELS))
    work = few.tune("work", "--domains", str(labels), *ONE, "--max-iterations", "2")
    show = read_weights(work / "run2.dense").show
    both = Weights(show.values, read_sparse(work / "run2.sparse-weights"))
    weights = list_domain_weights(both, FeatureSpace.of_names(show.names), sorted(set(LABELS)))
    lists = read_nbest(work / f"run2.best{NBEST}.out.gz")
    for number, label in enumerate(LABELS):
        rows = lists.sentence_ids == number
        for name in ("news", "talks"):
            scores = lists.dense[rows] @ np.array(weights[name].dense)
            # All but the penalty of unknown words, which is the same in a list.
            spread = float(np.ptp(lists.scores[rows] - scores))
            assert spread < 0.01 if name == label else spread > 0.1
