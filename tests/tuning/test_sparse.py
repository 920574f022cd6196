"""Sparse features: their weights travel in files of their own."""

from __future__ import annotations

from typing import Any

import pytest

from formats.errors import FormatError
from formats.moses.ini import read_moses_ini
from formats.references import read_references
from formats.weights.files import read_sparse
from mosesplug.errors import UsageError
from mosesplug.events import CommandStarted, Note
from mosesplug.optimizers.selection import count_sentences
from mosesplug.settings.online import OnlineSettings
from mosesplug.store import NBestStore
from mosesplug.tuning import tune

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any


def test_sparse_starting_weights_keep_their_scale(toy: Toy, log: Log) -> None:
    (toy.directory / "start.sparse").write_text("wt_hund 0.6\nwt_never 0.3\n")
    config = toy.directory / "moses.ini"
    config.write_text(f"[weight-file]\n{toy.directory}/start.sparse\n\n" + config.read_text())
    result = tune(toy.configuration(flags="-sparse", maximum_iterations=2), log)
    work = toy.directory / "work"
    norm = 0.3 + 0.5 + 1.0 + 3 * 0.2
    assert read_sparse(work / "run1.sparse-weights") == pytest.approx(
        {"wt_hund": 0.6 / norm, "wt_never": 0.3 / norm}
    )
    decodings = [e.command for e in log.of(CommandStarted) if "-n-best-list" in e.command]
    for number, command in enumerate(decodings, start=1):
        assert command[command.index("-weight-file") + 1] == f"run{number}.sparse-weights"
    # MERT leaves sparse weights alone, up to the factor that normalizes all.
    before, after = result.iterations[1].weights, result.weights
    assert set(after.sparse) == {"wt_hund", "wt_never"}
    assert after.sparse["wt_never"] == pytest.approx(0.3 / norm)
    assert after.sparse["wt_hund"] > 0
    assert before.sparse["wt_hund"] > 0
    tuned = read_moses_ini(work / "moses.ini").section("weight-file")
    assert [value.text for value in tuned] == [str(work / "run3.sparse-weights")]


def test_sparse_weights_that_a_decoder_would_prefer(toy: Toy, log: Log) -> None:
    """Moses' ``[weight]`` overrides its ``-weight-file``."""
    config = toy.directory / "moses.ini"
    lines = [*config.read_text().splitlines(), "[weight]", "wt_hund= 0.6", ""]
    config.write_text("\n".join(lines))
    with pytest.raises(
        FormatError, match=rf"moses\.ini:{len(lines) - 1}: .*'wt_hund' in \[weight\]"
    ):
        tune(toy.configuration(flags="-sparse"), log)
    assert not [event for event in log.of(CommandStarted) if "-n-best-list" in event.command]


def test_no_sparse_file_without_sparse_weights(toy: Toy, log: Log) -> None:
    tune(toy.configuration(flags="-sparse", maximum_iterations=2), log)
    # Once, and not as a warning, which would end a strict run.
    (note,) = [note for note in log.of(Note) if "sparse" in note.text]
    assert "mert tunes dense features only: the weights of" in note.text
    assert not note.is_warning
    assert not list((toy.directory / "work").glob("*sparse-weights"))


CUTS = (
    {"active": ("WordPenalty0", "wt_e*")},
    {"dropped": ("wt_h*",)},
    {"sparse_min_count": 10},
    {"sparse_max": 4},
)


@pytest.mark.parametrize("name", ["kbmira", "pro", "adagrad", "risk"])
@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: next(iter(cut)))
def test_cut_features_keep_their_weights(toy: Toy, name: str, cut: dict[str, Any]) -> None:
    (toy.directory / "start.sparse").write_text("wt_hund 0.6\n")
    config = toy.directory / "moses.ini"
    config.write_text(f"[weight-file]\n{toy.directory}/start.sparse\n\n" + config.read_text())
    options = {"epochs": 2} if name in ("kbmira", "adagrad") else {}
    optimization = {"algorithm": name, "options": options, **cut}
    run = toy.configuration(flags="-sparse", maximum_iterations=2, optimization=optimization)
    learned = {key for key, weight in tune(run).weights.sparse.items() if weight}
    kept = learned - {"wt_hund"}
    references = run.metric.prepare(read_references(run.references))
    with NBestStore.open(run.working_directory / "nbests.lmdb") as store:
        lists = store.tuning_set(range(1, 3), metric=run.metric, references=references)
    counts = dict(zip(lists.space.sparse, count_sentences(lists).tolist(), strict=True))
    assert kept, "nothing was learned"
    if "active" in cut:
        assert all(key.startswith("wt_e") for key in kept)
    elif "dropped" in cut:
        assert not any(key.startswith("wt_h") for key in kept)
        assert "wt_hund" in learned
    elif "sparse_min_count" in cut:
        assert min(counts[key] for key in kept) >= 10 > min(counts.values())
    else:
        best = sorted(counts, key=lambda key: -counts[key])[:4]
        assert kept <= {*best}


@pytest.mark.parametrize("online", [None, OnlineSettings(decoder="process")])
def test_patterns_that_match_nothing_are_refused(toy: Toy, online: OnlineSettings | None) -> None:
    learner = "kbmira" if online is None else "sgd"
    for early, cut in (
        (True, {"dropped": ("WT_*",)}),
        (True, {"active": ("LM7*",)}),
        (False, {"active": ("LM0", "wt_zz*")}),
    ):
        optimization = {"algorithm": learner, "options": {}, **cut}
        run = toy.configuration(
            flags="-sparse", optimization=optimization, online=online, existing="overwrite"
        )
        with pytest.raises(UsageError, match="there is no feature" if early else "wt_zz") as error:
            tune(run)
        assert ("--continue" in str(error.value)) is not early
