"""Test learning from stores and search graphs against the command line."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import mosesplug
from formats.graphs.hypergraph import write_hypergraph, write_hypergraph_weights
from mosesplug.cli.main import main
from mosesplug.errors import DataError, UsageError
from tests.cli.learn.test_optimize_graphs import NAMES, WORDS, nodes
from tests.results.runs import REFERENCE, make_run

FAST = {"restarts": 2, "polish": 1}


def run_command(*words: object) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["optimize", *map(str, words), "--quiet"])
    assert not ended.value.code


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make_run(tmp_path / "tuning")
    (tmp_path / "references").write_bytes(b"\n".join(REFERENCE) + b"\n")
    return tmp_path / "tuning"


def test_store_gives_the_weights_of_the_command_line(run: Path, tmp_path: Path) -> None:
    run_command("--from", run, "--restarts", 2, "--polish", 1, "-o", tmp_path / "tuned")
    fit = mosesplug.optimize(store=run, options=FAST)
    fit.save(tmp_path / "own")
    assert (tmp_path / "own").read_bytes() == (tmp_path / "tuned").read_bytes()
    assert fit.start.vector.tolist() == [0.5, 0.5]
    some = mosesplug.optimize(store=str(run), iterations="1", options=FAST)
    assert some.result.data.problem.tuning_set.n_hyps == 5


def test_store_with_another_metric(run: Path, tmp_path: Path) -> None:
    references = tmp_path / "references"
    words = ("--from", run, "--metric", "WER", "--refs", references, "-o", tmp_path / "tuned")
    run_command(*words, "--restarts", 2, "--polish", 1)
    texts = [line.decode() for line in REFERENCE]
    for given in (references, texts):
        fit = mosesplug.optimize(store=run, metric="WER", references=given, options=FAST)
        fit.save(tmp_path / "own")
        assert (tmp_path / "own").read_bytes() == (tmp_path / "tuned").read_bytes()
    with pytest.raises(UsageError, match="the store has statistics of BLEU"):
        mosesplug.optimize(store=run, metric="WER")
    with pytest.raises(DataError, match="the list of references has 2 lines, the store at"):
        mosesplug.optimize(store=run, references=texts[:2])
    with pytest.raises(UsageError, match="initial, entry 0: there is no feature LM;"):
        mosesplug.optimize(store=run, initial={"LM": 1})
    with pytest.raises(UsageError, match="sentence_ids and store exclude each other"):
        mosesplug.optimize(store=run, sentence_ids=[0])
    with pytest.raises(UsageError, match="dense and store exclude each other"):
        mosesplug.optimize(store=run, dense=["LM0"])


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    lines = [b" ".join(b"%b%d" % (word, sentence) for word in WORDS) for sentence in range(4)]
    (tmp_path / "references").write_bytes(b"\n".join(lines) + b"\n")
    directory = tmp_path / "graphs"
    directory.mkdir()
    for sentence in range(4):
        write_hypergraph(directory / f"{sentence}.gz", NAMES, nodes(sentence, good=True))
    write_hypergraph_weights(directory / "weights", NAMES, [1.0, 0.5, 0.1, 0.4])
    (tmp_path / "init.dense").write_text("LM0= 0.4\nTM0= 0.5 0.1\n")
    return directory


def test_graphs_give_the_weights_of_the_command_line(graphs: Path, tmp_path: Path) -> None:
    references, init = tmp_path / "references", tmp_path / "init.dense"
    words = ("--graphs", graphs, "--refs", references, "--init", init)
    run_command(*words, "--restarts", 2, "--polish", 1, "-o", tmp_path / "tuned")
    forms: list[dict[str, Any]] = [
        {"references": references, "initial": init},
        {"references": references.read_text().splitlines(), "initial": str(init)},
        {"references": references, "initial": {"LM0": 0.4, "TM0": (0.5, 0.1)}},
    ]
    for form in forms:
        for place in (graphs, [str(graphs)]):
            fit = mosesplug.optimize(graphs=place, options=FAST, **form)
            fit.save(tmp_path / "own")
            assert (tmp_path / "own").read_bytes() == (tmp_path / "tuned").read_bytes()
    # The weight of unknown words is not tuned, and not in the table.
    assert set(fit.weights) == {"LM0", "TM0", "S_good"}
    assert fit.score > fit.start_score
    found = mosesplug.cross_validate(graphs=graphs, folds=2, options=FAST, **forms[2])
    assert len(found.folds) == 2


@pytest.mark.parametrize(
    "algorithm", ["risk", "linear-bleu", "xbleu", "softmax", "mira", "arow", "rm-pa", "rm-cp"]
)
def test_learners_of_graphs_find_the_good_feature(
    graphs: Path, tmp_path: Path, algorithm: str
) -> None:
    start = {"LM0": 0.04, "TM0": (0.05, 0.01), "S_good": 0.0}
    form: dict[str, Any] = {"references": tmp_path / "references", "initial": start}
    fit = mosesplug.optimize(graphs=graphs, algorithm=algorithm, **form)
    assert fit.weights["S_good"] > 0.0
    assert fit.score == pytest.approx(1.0)
    again = mosesplug.optimize(graphs=graphs, algorithm=algorithm, threads=2, **form)
    assert again.weights == fit.weights
    option = {"softmax": "oracle_gain", "risk": "error"}.get(algorithm)
    if option is not None:
        with pytest.raises(UsageError, match=f"{option}=moses needs n-best lists"):
            mosesplug.optimize(
                graphs=graphs, algorithm=algorithm, options={option: "moses"}, **form
            )


def test_graphs_of_the_weights_that_made_them(graphs: Path, tmp_path: Path) -> None:
    fit = mosesplug.optimize(graphs=graphs, references=tmp_path / "references", options=FAST)
    assert fit.start["LM0"] == 0.4
    with pytest.raises(UsageError, match=r"^algorithm pro learns from n-best lists only"):
        mosesplug.optimize(graphs=graphs, references=tmp_path / "references", algorithm="pro")
    with pytest.raises(UsageError, match="scores and statistics require lists or features"):
        mosesplug.optimize(graphs=graphs, scores=[1])


def test_names_of_starting_weights_that_no_graph_has(graphs: Path, tmp_path: Path) -> None:
    start: dict[str, Any] = {"LM0": 0.4, "TM0": (0.5, 0.1), "S_good": 0.2}
    form: dict[str, Any] = {"references": tmp_path / "references", "options": FAST}
    mosesplug.optimize(graphs=graphs, initial=start, **form)
    with pytest.raises(UsageError, match=r"the starting weights .*: there is no feature LM1;"):
        mosesplug.optimize(graphs=graphs, initial={**start, "LM1": 1.0}, **form)
    # A table, as of another fit, may name more.
    table = mosesplug.WeightTable.of_mapping({"LM0": 0.4, "TM0": (0.5, 0.1), "LM1": 1.0})
    mosesplug.optimize(graphs=graphs, initial=table, **form)


def test_threads_learn_from_one_store(run: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        fits = threads.map(lambda _: mosesplug.optimize(store=run, options=FAST), range(2))
        first, second = (fit.weights.vector.tolist() for fit in fits)
    assert first == second
