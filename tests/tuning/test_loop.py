"""The loop on a toy system: what it leaves behind, and what its settings change."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.moses.ini import read_moses_ini
from formats.references import reference_files
from formats.weights.files import (
    parse_weight_overwrite,
    read_dense,
    read_init_opt,
    read_weights_txt,
)
from mosesplug.errors import DataError, StoreMismatch, UsageError
from mosesplug.events import (
    CommandStarted,
    DecodingProgress,
    IterationFinished,
    Note,
    PhaseStarted,
    RunFinished,
)
from mosesplug.learning.lists.merging import load_lists
from mosesplug.metrics import metric
from mosesplug.optimizers import Problem, corpus_score
from mosesplug.store import NBestStore
from mosesplug.tuning import tune

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any
Files = Callable[[Path], dict[str, bytes]]

NAMES = ("Distortion0", "LM0", "WordPenalty0", "TranslationModel0")


def commands(log: Log, flag: str) -> list[tuple[str, ...]]:
    return [event.command for event in log.of(CommandStarted) if flag in event.command]


def overwrite(command: tuple[str, ...]) -> list[float]:
    given = parse_weight_overwrite(command[command.index("-weight-overwrite") + 1])
    return [value for name in NAMES for value in given[name] if value is not None]


def test_tuning_raises_the_score_and_leaves_the_scripts_files(toy: Toy, log: Log) -> None:
    result = tune(toy.configuration(maximum_iterations=0), log)
    scores = [iteration.first_best_score for iteration in result.iterations]
    assert max(scores) > scores[0] + 0.1
    work = toy.directory / "work"
    last = len(scores)
    for number in range(1, last + 1):
        for name in (
            *("moses.ini", "dense", "out", "init.opt", "weights.txt", "decoder.err"),
            "best15.out.gz",
        ):
            assert (work / f"run{number}.{name}").is_file()
    assert (work / "finished_step.txt").read_text() == f"{last}\n"
    assert (work / "features.list").read_bytes().startswith(b"UnknownWordPenalty0 UNTUNEABLE\n")
    assert "no weight changed" in log.of(RunFinished)[0].reason
    assert [event.iteration for event in log.of(IterationFinished)] == list(range(1, last + 1))
    assert log.of(DecodingProgress)[-1].sentences == 12
    summary = json.loads((work / "summary.json").read_text())
    assert [i["first_best_score"] for i in summary["iterations"]] == scores
    assert not list(work.glob(".*"))


def test_files_of_an_iteration_agree(toy: Toy, log: Log) -> None:
    tune(toy.configuration(maximum_iterations=2), log)
    work = toy.directory / "work"
    start = read_init_opt(work / "run1.init.opt")
    assert start.start == (0.3, 0.5, -1.0, 0.2, 0.2, 0.2)
    assert (start.minima, start.maxima) == ((0.0,) * 6, (1.0,) * 6)
    found = read_weights_txt(work / "run1.weights.txt")
    assert read_init_opt(work / "run2.init.opt").start == found
    dense = read_dense(work / "run2.dense")
    assert tuple(value for _, values in dense for value in values) == found
    assert (work / "run2.dense").read_text().count("TranslationModel0= ") == 3
    first, second = map(overwrite, commands(log, "-n-best-list"))
    norm = sum(map(abs, start.start))
    assert first == pytest.approx([value / norm for value in start.start], abs=1e-11)
    assert second == pytest.approx(found, abs=1e-11)


def test_only_weights_change_in_the_configuration(toy: Toy) -> None:
    result = tune(toy.configuration())
    text = (toy.directory / "work" / "moses.ini").read_text()
    # The patterns of Moses' web page (scripts/ems/web/overview.php).
    assert re.search(r"# BLEU ([\d\. \-\>]+)", text)
    assert re.search(r"# We were before running iteration (\d+)", text)
    config = read_moses_ini(toy.directory / "work" / "moses.ini")
    weights = [value for name in NAMES for value in config.weights[name]]
    assert tuple(weights) == result.weights.dense
    assert config.weights["UnknownWordPenalty0"] == (1.0,)
    original = (toy.directory / "moses.ini").read_text().partition("[weight]")[0]
    assert original in text


def test_same_seed_same_bytes(toy: Toy, left_by_run: Files) -> None:
    tune(toy.configuration("a", optimization={"seed": 9, "threads": 1}))
    tune(toy.configuration("b", optimization={"seed": 9, "threads": 2}))
    assert left_by_run(toy.directory / "a") == left_by_run(toy.directory / "b")


def test_drawn_seed_is_kept(toy: Toy) -> None:
    first = tune(toy.configuration(optimization={"seed": None}, maximum_iterations=1))
    again = tune(
        toy.configuration(optimization={"seed": None}, maximum_iterations=1, existing="continue")
    )
    assert again.seed == first.seed


def test_predictable_seeds_need_no_seed(toy: Toy, left_by_run: Files) -> None:
    results = [
        tune(toy.configuration(name, optimization={"seed": seed, "predictable_seeds": True}))
        for name, seed in (("a", 1), ("b", 2))
    ]
    assert results[0].weights == results[1].weights
    assert left_by_run(toy.directory / "a") == left_by_run(toy.directory / "b")


@pytest.mark.parametrize("role", ["input", "references", "config"])
@pytest.mark.parametrize("name", ["run1.dense", "moses.ini", "features.list"])
def test_files_to_read_are_never_replaced(toy: Toy, role: str, name: str) -> None:
    sound = toy.configuration()
    work = toy.directory / "work"
    work.mkdir()
    given = Path(shutil.copy(reference_files(getattr(sound, role))[0], work / name))
    content = given.read_bytes()
    link = toy.directory / "link"
    link.symlink_to(given)
    for path in (given, link):
        with pytest.raises(UsageError, match=f"{path.name} is both an input and an output"):
            tune(toy.configuration(**{role: path}))
    assert given.read_bytes() == content


def test_weights_of_the_configuration_first(toy: Toy, log: Log) -> None:
    tune(toy.configuration(decoding={"config_weights_first": True}), log)
    first, second, *_ = commands(log, "-n-best-list")
    assert "-weight-overwrite" not in first
    assert "-weight-overwrite" in second


def test_large_weights_with_an_exponent(toy: Toy) -> None:
    config = toy.directory / "moses.ini"
    config.write_text(config.read_text().replace("LM0= 0.5", "LM0= 5e+05"))
    result = tune(toy.configuration(maximum_iterations=1))
    assert result.iterations[0].weights.dense[1] == 5e5


def test_active_features_and_ranges(toy: Toy) -> None:
    only = {"active": ("LM0_0", "TranslationModel0"), "ranges": ("LM0:-1..3",)}
    result = tune(toy.configuration(optimization=only, maximum_iterations=1))
    before, after = result.iterations[0].weights.dense, result.weights.dense
    # A common factor may come of normalizing; the ratios of fixed weights stay.
    assert after[0] / after[2] == pytest.approx(before[0] / before[2])
    init = read_init_opt(toy.directory / "work" / "run1.init.opt")
    assert (init.minima[1], init.maxima[1]) == (-1.0, 3.0)


@pytest.mark.parametrize(
    ("optimization", "why"),
    [
        ({"active": ("LM1_0",)}, "no feature LM1_0"),
        ({"active": ()}, "no feature is active"),
        ({"dropped": ("*",)}, r"'\*' drops all features"),
        ({"active": ("LM0",), "dropped": ("LM0",)}, "drops all that --active names"),
        ({"algorithm": "mert", "sparse_max": 5}, "--sparse-max would have no effect: mert tunes"),
        ({"ranges": ("LM1:0..1",)}, "no feature LM1"),
        ({"algorithm": "magic"}, "magic"),
        ({"options": {"magic": "1"}}, "magic"),
    ],
)
def test_rejected_before_decoding(toy: Toy, log: Log, optimization: Any, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        tune(toy.configuration(optimization=optimization), log)
    assert not commands(log, "-n-best-list")


def test_zero_starting_weights_are_rejected(toy: Toy) -> None:
    config = toy.directory / "moses.ini"
    config.write_text(
        re.sub(r"(?m)^(\w+=).*", r"\1 0", config.read_text()).replace("l0= 0", "l0= 0 0 0")
    )
    with pytest.raises(UsageError, match="all weights"):
        tune(toy.configuration())


def test_window_of_earlier_lists(toy: Toy) -> None:
    everything = tune(toy.configuration("all"))
    alone = tune(toy.configuration("alone", optimization={"window": 0}))
    assert everything.iterations[0].optimum == alone.iterations[0].optimum
    with NBestStore.open(toy.directory / "alone" / "nbests.lmdb") as store:
        last = store.tuning_set([2])
    scores = last.stats[last.first_best(alone.iterations[2].weights.vector(last.space))]
    value = toy.configuration().metric.score(scores.sum(axis=0))
    assert alone.iterations[1].optimum == pytest.approx(float(value))


def test_historic_bests_and_interpolation(toy: Toy) -> None:
    plain = tune(toy.configuration("plain", maximum_iterations=4, minimum_change=0.0))
    mixed = tune(
        toy.configuration(
            "mixed",
            maximum_iterations=4,
            minimum_change=0.0,
            optimization={"interpolation": 0.25},
        )
    )
    assert [i.weights for i in plain.iterations] == [i.weights for i in mixed.iterations]
    before = plain.iterations[3].weights
    assert mixed.weights == plain.weights.mix(before, 0.25)
    historic = tune(toy.configuration("historic", optimization={"historic_bests": True}))
    assert historic.iterations[0].optimum == plain.iterations[0].optimum


def test_interpolation_from_the_start(toy: Toy) -> None:
    """The start counts at the scale of the learned weights, whatever its own is."""
    config = toy.directory / "moses.ini"
    lines = config.read_text().splitlines()
    thrice = [
        " ".join(
            str(3 * float(word)) if word[-1].isdigit() and "=" not in word else word
            for word in line.split()
        )
        if "= " in line and "name=" not in line
        else line
        for line in lines
    ]
    found = {}
    for name, content in (("once", lines), ("thrice", thrice)):
        config.write_text("\n".join(content) + "\n")
        for share in (0.0, 0.25):
            optimization = {"interpolation": share, "interpolation_start": 1}
            run = toy.configuration(
                f"{name}{share}", maximum_iterations=1, optimization=optimization
            )
            found[name, share] = tune(run)
    plain, mixed = found["once", 0.0], found["once", 0.25]
    start = plain.iterations[0].weights.normalize()
    learned = plain.weights
    expected = learned.mix(start, 0.25).normalize()
    assert mixed.weights.normalize().dense == pytest.approx(expected.dense)
    assert mixed.weights.dense != learned.dense
    assert found["thrice", 0.25].weights.dense == pytest.approx(mixed.weights.dense)


def test_the_optimum_is_that_of_interpolated_weights(toy: Toy) -> None:
    # With these costs, interpolation changes the score.
    options = {"epochs": 1, "averaging": "last", "rate": 1.0, "cost": "lin-och"}
    learner = {"algorithm": "adagrad", "options": options, "interpolation": 0.5}
    result = tune(
        toy.configuration(
            maximum_iterations=4, minimum_change=0.0, select="last", optimization=learner
        )
    )
    bleu, work = metric("BLEU", "case:true"), toy.directory / "work"
    lists = [work / f"run{number}.best15.out.gz" for number in range(1, 5)]
    merged = Problem(load_lists(lists, toy.directory / "reference", bleu).tuning_set, bleu)
    assert result.scored_on == "lists"
    assert result.score == corpus_score(merged, np.array(result.weights.dense))
    assert result.score != result.iterations[3].curve[0]["score"]


def test_best_of_all_decoded_iterations(toy: Toy, log: Log) -> None:
    result = tune(toy.configuration(maximum_iterations=2, select="best-dev"), log)
    best = max(result.iterations, key=lambda iteration: iteration.first_best_score)
    # The last decoded iteration scores best here: mert-moses.pl would not have looked at it.
    assert best.number == 2 == result.chosen_iteration
    assert result.weights == best.weights
    assert result.score == best.first_best_score
    assert any("nothing was decoded with the weights" in note.text for note in log.of(Note))
    tuned = read_moses_ini(toy.directory / "work" / "moses.ini").weights
    assert tuned["LM0"] == (best.weights.dense[1],)


def test_features_are_announced_again_if_the_configuration_changes(toy: Toy, log: Log) -> None:
    tune(toy.configuration(maximum_iterations=1), log)
    assert len(commands(log, "-show-weights")) == 1
    tune(toy.configuration(maximum_iterations=1, existing="overwrite"), log)
    assert len(commands(log, "-show-weights")) == 1
    config = toy.directory / "moses.ini"
    config.write_text(config.read_text().replace("LM0= 0.5", "LM0= 0.25"))
    result = tune(toy.configuration(maximum_iterations=1, existing="overwrite"), log)
    assert len(commands(log, "-show-weights")) == 2
    assert result.iterations[0].weights.dense[1] == 0.25


def test_earlier_run_is_rejected_overwritten_or_continued(toy: Toy, log: Log) -> None:
    tune(toy.configuration(maximum_iterations=3, minimum_change=0.0), log)
    with pytest.raises(UsageError, match=r"--continue.*--overwrite"):
        tune(toy.configuration())
    log.events.clear()
    result = tune(
        toy.configuration(maximum_iterations=3, minimum_change=0.0, existing="continue"), log
    )
    assert not log.of(PhaseStarted)
    assert len(result.iterations) == 3
    tune(toy.configuration(maximum_iterations=1, existing="overwrite"), log)
    assert any("replacing the earlier run" in note.text for note in log.of(Note))
    assert not list((toy.directory / "work").glob("run2.*"))


def test_nothing_to_continue(toy: Toy, log: Log) -> None:
    tune(toy.configuration(maximum_iterations=1, existing="continue"), log)
    assert any("no run to continue" in note.text for note in log.of(Note))


def test_continued_with_other_input_or_settings(toy: Toy, log: Log) -> None:
    tune(toy.configuration(maximum_iterations=1))
    more = {"existing": "continue", "optimization": {"window": 0, "seed": 6}}
    tune(toy.configuration(maximum_iterations=2, **more), log)
    (text,) = [note.text for note in log.of(Note) if "other settings" in note.text]
    assert "earlier iterations: -1 -> 0" in text
    assert "seed: 5 -> 6" in text
    with pytest.raises(StoreMismatch, match="metric"):
        tune(toy.configuration(**more, metric=metric("BLEU", "case:false")))
    source = toy.directory / "input"
    source.write_text(source.read_text().replace("ein ", "eine "))
    with pytest.raises(StoreMismatch, match="input"):
        tune(toy.configuration(**more))


def test_second_run_in_the_same_directory(toy: Toy) -> None:
    work = toy.configuration(maximum_iterations=1)

    def again(event: object) -> None:
        if isinstance(event, PhaseStarted):
            with pytest.raises(DataError, match="in use"):
                tune(work)

    tune(work, again)


def test_decoder_is_skipped_once(toy: Toy, log: Log) -> None:
    work = toy.directory / "work"
    reference = tune(toy.configuration("other", maximum_iterations=2))
    work.mkdir()
    for name in ("run1.best15.out.gz", "run1.out"):
        shutil.copy(toy.directory / "other" / name, work)
    result = tune(toy.configuration(maximum_iterations=2, skip_decoder=True), log)
    assert [c[c.index("-n-best-list") + 1] for c in commands(log, "-n-best-list")] == [
        "run2.best15.out"
    ]
    assert result.weights == reference.weights


def test_skipped_decoder_without_a_list(toy: Toy) -> None:
    with pytest.raises(DataError, match="to be skipped"):
        tune(toy.configuration(skip_decoder=True))


def test_lattice_samples_are_merged(toy: Toy, log: Log) -> None:
    result = tune(toy.configuration(decoding={"lattice_samples": 4}, maximum_iterations=1), log)
    assert result.iterations[0].hypotheses == 12 * (15 + 4)
    work = toy.directory / "work"
    with gzip.open(work / "run1.best15.out.gz", "rt") as file:
        ids = [int(line.partition(" ")[0]) for line in file]
    assert ids == sorted(ids)
    assert (work / "run1.lsamp4.out.gz").is_file()


@pytest.mark.parametrize("transform", ["bpe", "sed 's/@@ //g'"])
def test_transformed_lists(toy: Toy, transform: str) -> None:
    plain = tune(toy.configuration("plain", maximum_iterations=1))
    cut = tune(
        toy.configuration(
            "cut", flags="-subwords", decoding={"transform": transform}, maximum_iterations=1
        )
    )
    with gzip.open(toy.directory / "cut" / "run1.best15.out.gz", "rt") as file:
        assert "@@" not in file.read()
    assert cut.iterations[0].first_best_score < plain.iterations[0].first_best_score


def test_failing_transformation(toy: Toy) -> None:
    broken = toy.configuration(decoding={"transform": "exit 3 ;"})
    with pytest.raises(DataError, match="transformation 'exit 3 ;' ended with exit code 3"):
        tune(broken)


def test_extractor_files_on_request(toy: Toy) -> None:
    tune(toy.configuration(maximum_iterations=1, keep_extractor_files=True))
    features = (toy.directory / "work" / "run1.features.dat").read_text()
    assert features.startswith("FEATURES_TXT_BEGIN_0 0 15 6 Distortion0_0 LM0_0")
    scores = (toy.directory / "work" / "run1.scores.dat").read_text()
    assert scores.startswith("SCORES_TXT_BEGIN_0 0 15 9 BLEU")
    weights = (toy.directory / "work" / "run1.weights.txt").read_text().split()
    log = (toy.directory / "work" / "run1.mert.log").read_text()
    assert log.startswith(f"Best point: {' '.join(weights)} => 0.")
    out = (toy.directory / "work" / "run1.mert.out").read_text().splitlines()
    assert out == [f"F{number} {weight}" for number, weight in enumerate(weights)]


def test_decoder_flags_are_folded_in(toy: Toy) -> None:
    tune(toy.configuration(flags="-threads 2 -distortion-limit 4", maximum_iterations=1))
    config = read_moses_ini(toy.directory / "work" / "moses.ini")
    assert [value.text for value in config.section("threads")] == ["2"]
    assert [value.text for value in config.section("distortion-limit")] == ["4"]


def test_settings_without_effect_are_reported(toy: Toy, log: Log) -> None:
    idle = {"historic_bests": True, "ranges": ("LM0:0..2",), "options": {"epochs": 1}}
    configuration = toy.configuration(
        optimization={"algorithm": "kbmira", **idle}, maximum_iterations=1
    )
    tune(configuration, log)
    said = [note.text for note in log.of(Note) if "several points" in note.text]
    assert [text.split()[0] for text in said] == ["--range", "--historic-bests"]
