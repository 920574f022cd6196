"""Runs whose metric a command computes: killed, resumed, held out, and in sums."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.nbest.files import read_nbest_blocks
from formats.references import read_references
from mosesplug.cli.main import main
from mosesplug.errors import UsageError
from mosesplug.events import Note
from mosesplug.learning.data import read_data
from mosesplug.learning.optimize import bind_optimizer, optimize
from mosesplug.metrics import metric
from mosesplug.results.report.gather import gather_report_steps
from mosesplug.results.views.list_statistics import describe_iteration
from mosesplug.results.views.run import open_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.settings.learning import make_learning_settings
from mosesplug.settings.online import HeldOutSet
from mosesplug.settings.optimizer import OptimizerSettings
from mosesplug.settings.scores.commands import ScoreCommands
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.reporting import read_first_bests
from tests.real_decoder.programs import start_fork

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any
SCORER = Path(__file__).parents[1] / "decoders" / "stand_in_scorer.py"


def command(log: Path, behavior: str = "right") -> str:
    return f"SHARE={sys.executable} -IS {SCORER} {log} {behavior}"


def call(words: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def scored(log: Path) -> list[str]:
    return log.read_text().splitlines()


def configuration(toy: Toy, name: str, objective: str = "SHARE", **more: Any) -> Any:
    commands = ScoreCommands((command(toy.directory / f"{name}.log"),), batch=7)
    plain = toy.configuration(name, **{"minimum_change": 0.0, **more})
    outside = commands.make_metrics(plain.input, plain.working_directory / "scores")
    return replace(plain, metric=metric(objective, "", outside), score_commands=commands)


def arguments(toy: Toy, name: str, behavior: str, *more: str) -> list[str]:
    files = [toy.directory / file for file in ("input", "reference")]
    run = [toy.decoder, toy.directory / "moses.ini", "--working-dir", toy.directory / name]
    settings = "--algorithm kbmira --nbest 15 --max-iterations 2 --seed 1 --score-batch 4 --quiet"
    own = ["--score-command", command(toy.directory / f"{name}.log", behavior)]
    return [*map(str, ["tune", *files, *run]), *settings.split(), *own, *more]


def wait_for_kill(words: list[str]) -> None:
    """Run the program in a fork until its scorer kills it."""
    _, status = os.waitpid(start_fork(words), 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in finds its caller in /proc")
@pytest.mark.parametrize("more", [(), ("--score-budget", "4"), ("--sentence-weights",)])
def test_a_killed_run_scores_nothing_twice(toy: Toy, more: tuple[str, ...]) -> None:
    if more == ("--sentence-weights",):
        weights = toy.directory / "weights"
        weights.write_text("0\n2\n0.5\n" * 4)
        more = (*more, str(weights))
    killed = arguments(toy, "killed", "kills", *more)
    wait_for_kill(killed)
    log = toy.directory / "killed.log"
    before = scored(log)
    assert len(before) == 28
    assert call([*killed, "--continue"]) == 0
    assert call(arguments(toy, "whole", "right", *more)) == 0
    after = scored(log)
    assert after[: len(before)] == before
    assert len(set(after)) == len(after)
    assert sorted(after) == sorted(scored(toy.directory / "whole.log"))
    for name in ("run2.dense", "run2.weights.txt"):
        one, other = ((toy.directory / run / name).read_bytes() for run in ("killed", "whole"))
        assert one == other


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in finds its caller in /proc")
def test_a_reported_command_scores_1_bests_only(toy: Toy, log: Log) -> None:
    """None of them twice, also if the run is killed meanwhile. Nothing else changes."""
    own = ("--report-metric", "SHARE", "--report-metric", "SHARE:0.5+BLEU:0.5")
    killed = arguments(toy, "killed", "kills 8", *own)
    wait_for_kill(killed)
    assert (toy.directory / "killed" / "run1.best15.out.gz").is_file()
    before = scored(toy.directory / "killed.log")
    assert call([*killed, "--continue"]) == 0
    asked = scored(toy.directory / "killed.log")
    assert asked[: len(before)] == before
    assert len(set(asked)) == len(asked)
    work = toy.directory / "killed"
    with NBestStore.open(work / "nbests.lmdb") as store:
        # At most the 1-bests of two decodings, and those of the result.
        firsts = [read_first_bests(store, number, 12) for number in (1, 2)]
        every = {(str(sentence), text.decode()) for one in firsts for sentence, text in one.items()}
    assert every <= set(list_asked(toy, "killed"))
    assert len(asked) <= 3 * 12
    summary = json.loads((work / "summary.json").read_text())
    assert summary["metric"] == "BLEU"
    for scores in (summary["result"], *summary["iterations"]):
        bleu = scores.get("first_best_score", scores.get("score"))
        share, both = scores["reported"].values()
        assert both == pytest.approx((share + bleu) / 2)
    # The settings of the run are those of the command line.
    assert call(["tune", "--settings", str(work / "settings.toml"), "--quiet", "--overwrite",
                 "--working-dir", str(toy.directory / "again")]) == 0  # fmt: skip
    again = json.loads((toy.directory / "again" / "summary.json").read_text())
    assert again["result"] == summary["result"]
    plain = [word for word in arguments(toy, "plain", "right") if not word.startswith("SHARE=")]
    plain.remove("--score-command")
    plain.remove("--score-batch")
    plain.remove("4")
    assert call(plain) == 0
    one, other = ((toy.directory / run / "run2.dense").read_bytes() for run in ("killed", "plain"))
    assert one == other


SLOW_DECODER = """#!{python} -IS
import subprocess, sys, time
from pathlib import Path

words = sys.argv[1:]
if "-n-best-list" not in words:
    sys.exit(subprocess.run(["{decoder}", *words]).returncode)
place = words.index("-n-best-list") + 1
target = Path(words[place])
words[place] = f"{{target}}.whole"
subprocess.run(["{decoder}", *words], check=True)
lines = Path(words[place]).read_bytes().splitlines(keepends=True)
half = len(lines) // 2
with target.open("wb") as file:
    file.writelines(lines[:half])
    file.flush()
    for _ in range(3000):
        if Path("{log}").exists():
            break
        time.sleep(0.02)
    else:
        sys.exit("no text was asked while this program decoded")
    file.writelines(lines[half:])
"""
"""A decoder that ends its list when a text of the first half was scored."""


def write_slow_decoder(toy: Toy) -> Path:
    decoder = toy.directory / "slow-decoder"
    values = {"python": sys.executable, "decoder": toy.decoder, "log": toy.directory / "slow.log"}
    decoder.write_text(SLOW_DECODER.format(**values))
    decoder.chmod(0o755)
    return decoder


@pytest.mark.parametrize(
    ("objective", "size"), [("SHARE", None), ("SHARE:0.6+BLEU:0.4", None), ("SHARE", 3)]
)
def test_texts_are_scored_while_the_decoder_decodes(
    toy: Toy, log: Log, objective: str, size: int | None
) -> None:
    more = {"maximum_iterations": 2, "score_budget": size}
    run = configuration(toy, "slow", objective, **more)
    slow = replace(run.decoding.decoder, program=write_slow_decoder(toy))
    tune(replace(run, decoding=replace(run.decoding, decoder=slow)), log)
    tune(configuration(toy, "quick", objective, **more), log)
    asked = scored(toy.directory / "slow.log")
    texts = [note.text for note in log.of(Note) if "score command" in note.text]
    assert (
        texts[0] == texts[1] == f"the score command SHARE scored {len(asked)} texts; 0 were known"
    )
    assert len(texts) == 2
    assert len(set(asked)) == len(asked)
    assert sorted(asked) == sorted(scored(toy.directory / "quick.log"))
    for name in ("run2.dense", "run2.weights.txt", "run2.best15.out.gz"):
        one, other = ((toy.directory / work / name).read_bytes() for work in ("slow", "quick"))
        assert one == other


def test_a_bad_answer_while_decoding_leaves_the_lists(
    toy: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(toy, "slow", "nan")
    words[words.index(str(toy.decoder))] = str(write_slow_decoder(toy))
    assert call(words) == 1
    message = capsys.readouterr().err
    assert message.count("the score command SHARE answered 'nan' to sentence 0") == 1
    assert len(scored(toy.directory / "slow.log")) == 4
    assert (toy.directory / "slow" / "run1.best15.out.gz").is_file()


def test_the_store_has_the_scores_of_all_hypotheses(toy: Toy, log: Log) -> None:
    run = configuration(toy, "work", "SHARE:0.6+BLEU:0.4")
    tune(run, log)
    references = [(toy.directory / f"reference{i}").read_text().splitlines() for i in (0, 1)]
    source = (toy.directory / "input").read_text().splitlines()
    with NBestStore.open(run.working_directory / "nbests.lmdb") as store:
        lists = store.tuning_set()
        for sentence in range(lists.n_sentences):
            known = {word for lines in references for word in lines[sentence].split()}
            words = [text.decode().split() for text in store.hypotheses(sentence)]
            shares = [sum(w in known for w in text) / max(1, len(text)) for text in words]
            rows = slice(lists.offsets[sentence], lists.offsets[sentence + 1])
            assert lists.stats[rows, :2].tolist() == [[share, 1.0] for share in shares]
            assert lists.stats.dtype == np.float64
    for line in scored(toy.directory / "work.log"):
        sentence, read, _ = line.split("\t")
        assert read == source[int(sentence)]


def test_stored_scores_are_read_without_the_command(toy: Toy, log: Log) -> None:
    run = configuration(toy, "work", "SHARE:0.6+BLEU:0.4")
    tune(run, log)
    count, place = len(scored(toy.directory / "work.log")), run.working_directory

    def read(**values: Any) -> Any:
        return read_data(make_learning_settings({"from": place, **values}))

    whole = read().problem.tuning_set.stats
    for name, columns, kind in (
        ("SHARE", slice(2), np.float64),
        ("BLEU", slice(2, None), np.int32),
        ("BLEU:0.9+SHARE:0.1", [*range(2, 11), 0, 1], np.float64),
    ):
        data = read(metric=name)
        assert data.problem.tuning_set.stats.dtype == kind
        np.testing.assert_array_equal(data.problem.tuning_set.stats, whole[:, columns])
        again = read(metric=name, refs=run.references) if name == "BLEU" else None
        assert again is None or again.signature == data.signature
    assert read(metric="SHARE").signature == "SHARE|outside:mean|version:scorer 1|nrefs:2"
    with pytest.raises(UsageError, match=r"statistics of SHARE,BLEU.*to optimize WER.*--refs FILE"):
        read(metric="WER")
    commands = {"score-command": [command(toy.directory / "work.log")], "metric": "SHARE"}
    with pytest.raises(UsageError, match=r"command of SHARE read references in this run.*--refs"):
        read(**commands)
    known = read(**commands, refs=run.references).problem.tuning_set.stats
    np.testing.assert_array_equal(known, whole[:, :2])
    # A budget of whole lists asks the same, and changes nothing.
    settings = [
        make_learning_settings({"from": place, "algorithm": "kbmira", **commands, **more})
        for more in ({"refs": run.references}, {"refs": run.references, "score-budget": 100})
    ]
    plain, within = (optimize(each, bind_optimizer(each)) for each in settings)
    one, other = (result.learning.solution for result in (plain, within))
    assert one.weights.tobytes() == other.weights.tobytes()
    assert within.budget is not None
    assert within.budget.scored == within.budget.hypotheses == len(whole)
    assert len(scored(toy.directory / "work.log")) == count
    # A report has the scores of parts, and those of a command that the run did not know.
    other = command(toy.directory / "other.log").replace("SHARE=", "OTHER=")
    references = [[*map(bytes, lines)] for lines in read_references(run.references)]
    (asked,) = ScoreCommands((other,)).make_metrics(None, place / "scores")
    with open_run(place, with_lists=True) as opened:
        text = ParallelText(run.input.read_bytes().splitlines(), references)
        *_, report = gather_report_steps(opened, text, watched=["SHARE", asked])
        *_, bare = gather_report_steps(opened, ParallelText(), watched=["SHARE"])
        firsts = [opened.store.first_best_statistics(k)[:, :2].sum(axis=0) for k in (1, 2)]
    shares, others = report.watched_scores
    assert shares.scores == bare.watched_scores[0].scores == others.scores
    assert shares.scores[:2] == tuple(total / count for total, count in firsts)
    assert scored(toy.directory / "other.log")[0].split("\t")[1] == text.source[0].decode()


def test_held_out_sentences_have_their_own_source(toy: Toy, log: Log) -> None:
    for name in ("input", "reference0", "reference1"):
        lines = (toy.directory / name).read_bytes().splitlines(keepends=True)
        other = name.replace("input", "other").replace("reference", "other-reference")
        (toy.directory / other).write_bytes(b"".join(lines[7:2:-1]))
    texts = HeldOutSet(toy.directory / "other", toy.directory / "other-reference")
    run = configuration(toy, "work", held_out=texts, maximum_iterations=2)
    result = tune(run, log)
    scores = [score for iteration in result.iterations for _, score in iteration.heldout]
    assert len(scores) == 3
    assert all(0 < score <= 1 for score in scores)
    lines = (toy.directory / "input").read_text().splitlines()
    read = {line.split("\t")[1] for line in scored(toy.directory / "work.log")}
    assert read == set(lines)


def test_another_version_is_another_metric(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = arguments(toy, "work", "right")
    assert call(run) == 0
    count = len(scored(toy.directory / "work.log"))
    gc.collect()  # ends the command, which belongs to nothing any more
    monkeypatch.setenv("SCORER_VERSION", "2")
    capsys.readouterr()
    assert call([*run, "--continue", "--max-iterations", "3"]) == 1
    assert "version:scorer 1|nrefs:2, given SHARE|outside:mean|version:scorer 2" in (
        capsys.readouterr().err
    )
    assert len(scored(toy.directory / "work.log")) == count


def test_a_command_that_the_metric_leaves_out_is_rejected(
    toy: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call([*arguments(toy, "work", "right"), "--metric", "BLEU"]) == 2
    ways = "too, as in --metric BLEU:0.5+SHARE:0.5, or in --report-metric SHARE"
    assert ways in capsys.readouterr().err
    assert not (toy.directory / "work" / "run1.out").exists()


def test_a_bad_answer_leaves_a_run_that_can_be_continued(
    toy: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(arguments(toy, "work", "nan")) == 1
    assert "the score command SHARE answered 'nan' to sentence 0" in capsys.readouterr().err
    assert len(scored(toy.directory / "work.log")) == 4
    assert call([*arguments(toy, "work", "right"), "--continue"]) == 0
    # All of the batch with the bad answer is scored again.
    after = scored(toy.directory / "work.log")
    assert after[4:8] == after[:4]
    assert len(set(after)) == len(after) - 4


def budget(toy: Toy, name: str, size: int | None, **more: Any) -> Any:
    return configuration(toy, name, score_budget=size, maximum_iterations=3, **more)


def list_asked(toy: Toy, name: str) -> list[tuple[str, ...]]:
    """The sentence and the text of each question."""
    lines = scored(toy.directory / f"{name}.log")
    return [tuple(line.split("\t")[::2]) for line in lines]


@pytest.mark.parametrize("algorithm", ["mert", "kbmira"])
def test_a_budget_of_whole_lists_changes_nothing(toy: Toy, log: Log, algorithm: str) -> None:
    optimization = OptimizerSettings(algorithm=algorithm, seed=5)
    for name, size in (("all", None), ("whole", 15)):
        tune(budget(toy, name, size, optimization=vars(optimization)), log)
    assert sorted(list_asked(toy, "all")) == sorted(list_asked(toy, "whole"))
    for file in ("run3.dense", "run3.weights.txt", "run3.best15.out.gz"):
        one, other = ((toy.directory / name / file).read_bytes() for name in ("all", "whole"))
        assert one == other
    stores = [NBestStore.open(toy.directory / name / "nbests.lmdb") for name in ("all", "whole")]
    one, other = (store.tuning_set() for store in stores)
    assert one.stats.tobytes() == other.stats.tobytes()
    assert one.dense.tobytes() == other.dense.tobytes()
    for store in stores:
        store.close()


def test_a_budget_limits_new_texts(toy: Toy, log: Log) -> None:
    run = budget(toy, "work", 2)
    result = tune(run, log)
    best = dict[int, tuple[float, bytes]]()
    with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
        n_iterations, n_sentences = len(store.iterations()), store.n_sentences
        stored = {
            (str(sentence), text.decode())
            for sentence in range(n_sentences)
            for text in store.hypotheses(sentence)
        }
        for iteration in range(1, n_iterations + 1):
            path = toy.directory / "work" / f"run{iteration}.best15.out.gz"
            first: dict[int, bytes] = {}
            for block in read_nbest_blocks(path):
                scores = block.dense.astype(np.float64) @ np.array(result.weights.dense)
                for row, sentence in enumerate(block.sentence_ids.tolist()):
                    first.setdefault(sentence, block.text(row))
                    if sentence not in best or scores[row] > best[sentence][0]:
                        best[sentence] = scores[row], block.text(row)
            for sentence, text in first.items():
                assert store.iteration_list(iteration, sentence).texts[0] == text
    asked = list_asked(toy, "work")
    assert len(set(asked)) == len(asked)
    # Besides, after the last iteration: what the result chooses of all lists.
    chosen = {(str(sentence), text.decode()) for sentence, (_, text) in best.items()}
    left_out = chosen - stored
    assert left_out
    assert set(asked) == stored | left_out
    counts = Counter(sentence for sentence, _ in stored)
    assert max(counts.values()) <= 2 * n_iterations
    references = [(toy.directory / f"reference{i}").read_text().splitlines() for i in (0, 1)]
    known = [
        {word for line in lines for word in line.split()} for lines in zip(*references, strict=True)
    ]
    words = [(known[int(sentence)], text.split()) for sentence, text in chosen]
    shares = [sum(word in right for word in text) / len(text) for right, text in words]
    assert result.score == pytest.approx(np.mean(shares), abs=1e-12)
    notes = [note.text for note in log.of(Note) if "score budget" in note.text]
    assert len(notes) == 2 * n_iterations
    assert notes[-1].startswith(f"in {len(left_out)} of {n_sentences} sentences, the resulting")
    assert f"the score of the result is {result.score:.6f} instead of" in notes[-1]
    document = json.loads((toy.directory / "work" / "summary.json").read_bytes())
    assert document["result"]["score_budget"]["scored_at_end"] == len(left_out)
    assert f"instead of {document['result']['score_budget']['score_before']:.6f}" in notes[-1]
    costs = [iteration["score_budget"] for iteration in document["iterations"]]
    assert sum(cost["texts"] for cost in costs) == len(stored)
    for iteration, cost in enumerate(costs, start=1):
        start = f"iteration {iteration}: {cost['scored']} of {cost['hypotheses']} hypotheses are"
        assert any(note.startswith(start) for note in notes)
        left = f": in {cost['unscored_first_bests']} of {n_sentences} sentences, the new weights"
        assert iteration == n_iterations or any(left in note for note in notes)
    with open_run(toy.directory / "work") as opened:
        facts = [describe_iteration(opened, record) for record in opened.records]
    assert [fact.listed for fact in facts] == [cost["hypotheses"] for cost in costs]
    assert [fact.left_out for fact in facts] == [cost["unscored_first_bests"] for cost in costs]
    again = tune(replace(run, existing="continue"), log)
    assert again.score == result.score
    assert len(list_asked(toy, "work")) == len(asked)
    missing = toy.directory / "work" / "run2.best15.out.gz"
    missing.unlink()
    incomplete = tune(replace(run, existing="continue"), log)
    (warning,) = [note.text for note in log.of(Note) if "that of the scored hyp" in note.text]
    assert f"{missing}, which has those that the score budget left out, does not" in warning
    assert f"instead of {incomplete.score:.6f}" in notes[-1]
