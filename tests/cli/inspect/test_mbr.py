"""``mosesplug mbr`` as a user runs it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from formats.graphs.hypergraph import Edge, write_hypergraph, write_hypergraph_weights
from formats.graphs.hypergraph_reader import read_hypergraph
from mosesplug.cli.main import main
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import IterationStart
from tests.store.toys import Hypothesis, ToyMetric, make_list

LONELY, FIRST, SECOND = b"p q r s t", b"a b c d e", b"a b c d f"
"""The model's best translation, and two that agree but in a word."""
SCORES = {LONELY: 0.0, FIRST: -0.1, SECOND: -0.2}
CHOSEN = FIRST + b"\n"


def nodes(scale: float = 1.0) -> list[list[Edge]]:
    """The graph of a sentence with these translations; feature ``B`` tells them apart."""
    edges = [
        Edge((0, *text.split()), 1, (1.0, scale * score), (("S_x", 1.0),))
        for text, score in SCORES.items()
    ]
    return [[Edge((b"<s>",), 0)], edges, [Edge((1, b"</s>"), 1)]]


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    """A directory of graphs of sentences 0 and 2, with weights beside them."""
    directory = tmp_path / "graphs"
    directory.mkdir()
    write_hypergraph(directory / "0.gz", ("A", "B"), nodes())
    write_hypergraph(directory / "2", ("A", "B"), nodes(), compress=None)
    write_hypergraph_weights(directory / "weights", ("A", "B"), (0.5, 1.0))
    return directory


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """The graphs as lists; the second has repeated translations in another order."""
    lines = [b"0 ||| %s ||| A= 1 B= %g ||| %g" % (t, s, s) for t, s in SCORES.items()]
    for text, score in reversed(SCORES.items()):
        lines.append(b"1 ||| %s  ||| A= 1 B= %g ||| %g" % (text, score, score))
    lines.append(b"1 ||| %s  ||| A= -4 B= 0 ||| -5" % LONELY)
    with gzip.open(tmp_path / "lists.gz", "wb") as file:
        file.write(b"\n".join(lines) + b"\n")
    return tmp_path / "lists.gz"


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["mbr", *map(str, words)])
    return int(ended.value.code or 0)


METHODS = [(), ("--list-mbr",), ("--lattice-mbr",), ("--lattice-mbr", "--precision", 0.5)]


@pytest.mark.parametrize("method", METHODS)
def test_graphs(
    graphs: Path, method: tuple[object, ...], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(graphs, *method) == 0
    printed = capsysbinary.readouterr()
    assert printed.out == CHOSEN + b"\n" + CHOSEN
    assert b"2 sentences, 2 not the model's best" in printed.err
    assert b"1 sentences have no graph or list, the first is 1" in printed.err


@pytest.mark.parametrize("method", METHODS)
def test_lists(lists: Path, method: tuple[object, ...], tmp_path: Path) -> None:
    output = tmp_path / "chosen"
    assert run("--nbest", lists, *method, "-o", output, "--quiet") == 0
    assert output.read_bytes() == 2 * CHOSEN


def test_a_sharp_posterior_leaves_the_best(
    graphs: Path, lists: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for source in ((graphs,), ("--nbest", lists)):
        for method in METHODS[:3]:
            assert run(*source, *method, "--scale", 1000, "--quiet") == 0
            printed = capsysbinary.readouterr()
            assert printed.out.replace(b"\n\n", b"\n") == 2 * (LONELY + b"\n")
            assert printed.err == b""


def test_a_beam_removes_unlikely_hypotheses(
    graphs: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(graphs, "--beam", 0.15, "--scale", 0.9, "--quiet") == 0
    # The best and one of the others are left.
    assert capsysbinary.readouterr().out == LONELY + b"\n\n" + LONELY + b"\n"


def test_other_weights(
    graphs: Path, lists: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Such that the last is the best by far; from all kinds of files."""
    (tmp_path / "run1.dense").write_text("A= 1\nB= -1000\n")
    (tmp_path / "moses.ini").write_text("[weight]\nUnknownWordPenalty0= 1\nA= 1\nB= -1000\n")
    for name in ("run1.dense", "moses.ini"):
        for source in ((graphs,), ("--nbest", lists)):
            assert run(*source, "--weights", tmp_path / name, "--quiet") == 0
            out = capsysbinary.readouterr().out.split()
            assert out == 2 * SECOND.split()


def test_unlabeled_lists(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "lists").write_text("0 ||| a ||| 1 2 ||| 0\n0 ||| b ||| 1 3 ||| -9\n")
    (tmp_path / "weights").write_text("A= 1\nB= 20\n")
    words = ("--nbest", tmp_path / "lists", "--names", "A,B", "--weights", tmp_path / "weights")
    assert run(*words, "--quiet") == 0
    assert capsysbinary.readouterr().out == b"b\n"


def test_sparse_weights(graphs: Path, lists: Path, tmp_path: Path) -> None:
    (tmp_path / "sparse").write_text("S_x 3\n")
    (tmp_path / "dense").write_text("A= 1\nB= 1\n")
    words = ("--weights", tmp_path / "dense", "--sparse-weights", tmp_path / "sparse", "--quiet")
    for source in ((graphs,), ("--nbest", lists)):
        assert run(*source, *words, "-o", tmp_path / "chosen") == 0
        assert (tmp_path / "chosen").read_bytes().replace(b"\n\n", b"\n") == 2 * CHOSEN


def test_a_store_of_graphs(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Each iteration has its own graph, and weights that make another translation the best."""
    metric = ToyMetric()
    prepared = metric.prepare(((b"a",) * 2,))
    with NBestStore.open(tmp_path / "nbests.lmdb", writable=True) as store:
        for iteration, weight in ((1, -1000.0), (2, 1.0)):
            path = tmp_path / f"{iteration}"
            write_hypergraph(path, ("A", "B"), nodes(), compress=None)
            store.add_graphs(iteration, [(1, read_hypergraph(path))], groups=(("A", 1), ("B", 1)))
            start = IterationStart(Weights((0.5, weight)), 1, {}, ("decoder",), 1.0)
            listed = [make_list([Hypothesis(0, b"a", (1.0, 0.0))], groups=(("A", 1), ("B", 1)))]
            store.add_iteration(
                iteration,
                listed,
                record=start.as_record(),
                metric=metric,
                references=prepared,
                n_sentences=2,
            )
    for words, expected in (
        ((), FIRST),
        (("--iteration", 1), SECOND),
        (("--scale", 1000), LONELY),
    ):
        for place in (tmp_path, tmp_path / "nbests.lmdb"):
            assert run("--store", place, *words, "--quiet") == 0
            assert capsysbinary.readouterr().out == b"\n" + expected + b"\n"
    (tmp_path / "other").write_text("A= 1\nB= -1000\n")
    assert run("--store", tmp_path, "--weights", tmp_path / "other", "--quiet") == 0
    assert capsysbinary.readouterr().out == b"\n" + SECOND + b"\n"
    (tmp_path / "less").write_text("A= 1\n")
    assert run("--store", tmp_path, "--weights", tmp_path / "less") == 1
    assert b"have the feature B, but the weights are for A" in capsysbinary.readouterr().err
    assert run("--store", tmp_path, "--iteration", 3) == 1
    assert b"no iteration 3 with search graphs" in capsysbinary.readouterr().err


def test_a_store_of_graphs_with_a_feature_that_is_not_tuned(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Its weight is in the configuration; the others were normalized for the decoder."""
    edges = [Edge((b"a",), 1, (1.0, 0.0)), Edge((b"b",), 1, (0.0, 1.0))]
    write_hypergraph(tmp_path / "0", ("A", "Own"), [edges], compress=None)
    metric = ToyMetric()
    groups = (("A", 1),)
    command = ("decoder", "-weight-overwrite", "A= 1")
    with NBestStore.open(tmp_path / "nbests.lmdb", writable=True) as store:
        graph = read_hypergraph(tmp_path / "0")
        store.add_graphs(1, [(0, graph)], groups=groups, fixed=("Own",))
        store.add_iteration(
            1,
            [make_list([Hypothesis(0, b"a", (1.0,))], groups=groups)],
            record=IterationStart(Weights((4.0,)), 1, {}, command, 1.0).as_record(),
            metric=metric,
            references=metric.prepare(((b"a",),)),
            n_sentences=1,
        )
    ini = "[feature]\nF name=A\nF name=Own tuneable=false\n[weight]\nA= 1\nOwn= {}\n"
    for weight, expected in ((0.5, b"a\n"), (2, b"b\n")):
        (tmp_path / "run1.moses.ini").write_text(ini.format(weight))
        assert run("--store", tmp_path, "--scale", 1000, "--quiet") == 0
        assert capsysbinary.readouterr().out == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_translations_do_not_depend_on_threads(
    tmp_path: Path, threads: int, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for sentence in range(40):
        scale = (1.0, 1000.0)[sentence % 2]
        write_hypergraph(tmp_path / f"{sentence}", ("A", "B"), nodes(scale), compress=None)
    (tmp_path / "weights").write_text("A 1\nB 1\n")
    assert run(tmp_path, "--threads", threads, "--quiet") == 0
    assert capsysbinary.readouterr().out == 20 * (CHOSEN + LONELY + b"\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "there is no input"),
        (("{graphs}", "--nbest", "{lists}"), "--nbest and GRAPHS exclude"),
        (("{graphs}", "--list-mbr", "--lattice-mbr"), "--list-mbr and --lattice-mbr exclude"),
        (("{graphs}", "--iteration", "1"), "--iteration requires --store"),
        (("{graphs}", "--names", "A"), "--names requires --nbest"),
        (("--nbest", "{lists}", "--beam", "1"), "--nbest and --beam exclude"),
        (("{graphs}", "--precision", "0.5"), "requires --lattice-mbr"),
        (("{graphs}", "--lattice-mbr", "--ratio", "1.5"), "--ratio=1.5: it must be above 0"),
        (("{graphs}", "--scale", "inf"), "--scale=inf"),
        (("{graphs}", "--beam", "inf"), "--beam=inf"),
        (("{graphs}", "--sparse-weights", "{lists}"), "--sparse-weights requires --weights"),
        (("{graphs}/0.gz/..",), "No such file or directory"),
        (("--store", "{graphs}"), "no store in"),
        (("{graphs}", "-o", "{graphs}"), "is a directory"),
    ],
)
def test_usage_errors(
    words: tuple[str, ...],
    message: str,
    graphs: Path,
    lists: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = run(*(word.format(graphs=graphs, lists=lists) for word in words))
    said = capsys.readouterr().err
    assert code == 2
    assert message in said


def test_missing_weights_are_rejected(graphs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (graphs / "weights").rename(graphs.parent / "elsewhere")
    assert run(graphs) == 2
    assert f"there is no file {graphs / 'weights'}" in capsys.readouterr().err
    (graphs.parent / "empty").write_text("\n")
    assert run(graphs, "--weights", graphs.parent / "empty") == 1
    assert "empty: the file has no weights" in capsys.readouterr().err
    (graphs.parent / "less").write_text("A= 1\n")
    assert run(graphs, "--weights", graphs.parent / "less") == 1
    assert (
        "0.gz: no weight for the dense feature B; the weights are for A" in capsys.readouterr().err
    )


def test_damaged_input(
    graphs: Path, lists: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (graphs / "5").write_text("no graph\n")
    assert run(graphs) == 1
    assert f"{graphs / '5'}" in capsys.readouterr().err
    (tmp_path / "bare").write_text("0 ||| a ||| A= 1 ||| 1\n0 ||| b ||| A= 2\n")
    assert run("--nbest", tmp_path / "bare") == 1
    said = capsys.readouterr().err
    assert f"{tmp_path / 'bare'}" in said
    assert ":2" in said or "line 2" in said
    assert run(tmp_path / "missing") == 2
    assert "missing: No such file" in capsys.readouterr().err


def test_recorded_graphs_agree_with_decoding_where_the_posterior_is_sharp(
    multi30k: Path, tmp_path: Path
) -> None:
    """Moses' own first-best, by the weights that Moses wrote beside its graphs."""
    for sentence in range(4):
        name = f"{sentence}.gz"
        (tmp_path / name).symlink_to(multi30k / "forest" / "hypergraph" / name)
    weights = multi30k / "forest" / "init.dense"
    words = (tmp_path, "--weights", weights, "--scale", 1000, "--quiet", "-o", tmp_path / "out")
    assert run(*words) == 0
    expected = b""
    for sentence in range(4):
        line = (multi30k / "forest" / f"hgdecode.{sentence}.txt").read_bytes()
        expected += line.replace(b"<s> ", b"").replace(b" </s> ", b"")
    assert (tmp_path / "out").read_bytes() == expected


def test_a_metric_as_the_utility(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """By hand: expected WER of a list, and BLEU+1 as --list-mbr has it."""
    lines = ["u ||| a b ||| ||| 0", "u ||| a c ||| ||| -0.1", "u ||| d c ||| ||| -0.1"]
    lines = [line.replace("u", "0", 1) for line in lines]
    (tmp_path / "list").write_text("\n".join(lines) + "\n")
    # With equal probabilities, "a c" has 0 + 1/2 + 1/2 errors a word, the others 0 + 1/2 + 1.
    words = ("--nbest", tmp_path / "list", "--scale", 0, "--quiet")
    assert run(*words, "--metric", "WER") == 0
    assert capsysbinary.readouterr().out == b"a c\n"
    assert run(*words, "--metric", "CER", "--metric-settings", "blanks:remove") == 0
    assert capsysbinary.readouterr().out == b"a c\n"
    assert run("--nbest", tmp_path / "list", "--scale", 50, "--quiet", "--metric", "WER") == 0
    assert capsysbinary.readouterr().out == b"a b\n"


def test_bleu_as_the_utility_is_list_mbr(
    lists: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for scale in (0, 1, 3):
        outputs = []
        for method in (("--list-mbr",), ("--metric", "BLEU")):
            assert run("--nbest", lists, "--scale", scale, "--quiet", *method) == 0
            outputs.append(capsysbinary.readouterr().out)
        assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--metric", "WER", "--list-mbr"), "--metric and --list-mbr exclude each other"),
        (("--metric-settings", "case:false"), "--metric-settings requires --metric"),
        (("--metric", "NOVEL"), "unknown metric 'NOVEL'"),
    ],
)
def test_usage_errors_of_metrics(
    words: tuple[str, ...], message: str, lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--nbest", lists, *words) == 2
    assert message in capsys.readouterr().err
