"""kbmira --type hypergraph: recordings of Moses', its options, and what is refused."""

from __future__ import annotations

import re
import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from formats.graphs.hypergraph import Edge, write_hypergraph
from mosesplug.cli.moses.kbmira import main
from mosesplug.moses_tools.c_rand import CRand

NAMES = ("LM0", "TM0_1", "TM0_2")
WORDS = tuple(b"w%d" % number for number in range(12))
N_SENTENCES = 12


def write_graphs(directory: Path) -> None:
    """Lattices of three steps; the words that the references have look good to ``TM0_1``."""
    (directory / "hg").mkdir()
    (directory / "hg" / "weights").write_text("LM0 0.5\n")
    rng = np.random.default_rng(1)
    references = []
    for sentence in range(N_SENTENCES):
        words = rng.integers(0, len(WORDS), (4, 4))
        references.append(b" ".join(WORDS[word] for word in words[:, 0]))
        nodes: list[list[Edge]] = [[Edge((b"<s>",), 0)]]
        for step, choices in enumerate(words):
            edges = []
            for number, word in enumerate(choices):
                good = 1.0 if number == 0 else -1.0
                values = (*rng.normal(0.0, 1.0, 1), good + rng.normal(), rng.normal())
                sparse = (("wt_x", 1.0),) if number == 1 else ()
                edges.append(Edge((step, WORDS[word]), step + 1, values, sparse))
            nodes.append(edges)
        nodes.append([Edge((len(words), b"</s>"), len(words))])
        write_hypergraph(directory / "hg" / f"{sentence}.gz", NAMES, nodes)
    (directory / "ref").write_bytes(b"\n".join([*references, b""]))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with graphs, a reference and starting weights."""
    monkeypatch.chdir(tmp_path)
    write_graphs(tmp_path)
    Path("init.dense").write_text("LM0= 0.5\nTM0= 0.01\nTM0= 0.25\n")
    return tmp_path


GRAPHS = ("--type", "hypergraph", "--hgdir", "hg", "-R", "ref", "-d", "init.dense")


def kbmira(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


def test_same_updates_and_weights_as_moses(
    multi30k: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every hope, fear, worth, loss and weight of three epochs, to the last digit shown."""
    forest = multi30k / "forest"
    with (multi30k / "text" / "dev.en").open("rb") as lines:
        (tmp_path / "ref").write_bytes(b"".join(islice(lines, 60)))
    words = ["--hgdir", str(forest / "hypergraph"), "--reference", str(tmp_path / "ref")]
    words += ["--dense-init", str(forest / "init.dense"), "--no-shuffle", "-J3", "-r1", "--verbose"]
    assert kbmira("--type", "hypergraph", *words, "-o", str(tmp_path / "out")) == 0
    assert (tmp_path / "out").read_text() == (forest / "kbmira.noshuffle.weights").read_text()
    log = capsys.readouterr().err
    assert log == (forest / "kbmira.noshuffle.verbose.log").read_text()


def test_learns_dense_and_sparse_weights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kbmira(*GRAPHS, "-r", "3", "-J", "20", "-o", "out") == 0
    rows = [line.split() for line in (here / "out").read_text().splitlines()]
    found = {name: float(value) for name, value in rows}
    assert list(found) == ["F0", "F1", "F2", "wt_x"]
    assert found["F1"] > max(abs(found["F0"]), abs(found["F2"]))
    assert found["wt_x"] < 0
    log = capsys.readouterr().err
    epochs = [float(score) for score in re.findall(r"avg loss = \S+, BLEU = (\S+)", log)]
    assert len(epochs) == 20
    assert float(re.findall(r"Best BLEU = (\S+)", log)[0]) == max(epochs)
    assert max(epochs) > float(re.findall(r"Initial BLEU = (\S+)", log)[0]) + 0.2


def test_shuffles_once(here: Path) -> None:
    """As not shuffling sentences that lie in the order that ``std::random_shuffle`` makes."""
    order = list(range(N_SENTENCES))
    for place, number in enumerate(CRand(5).draw(N_SENTENCES - 1).tolist(), start=1):
        other = number % (place + 1)
        order[place], order[other] = order[other], order[place]
    lines = Path("ref").read_bytes().splitlines(keepends=True)
    Path("shuffled").mkdir()
    for place, sentence in enumerate(order):
        (here / "hg" / f"{sentence}.gz").rename(here / "shuffled" / f"{place}.gz")
    Path("lines").write_bytes(b"".join(lines[sentence] for sentence in order))
    moved = ("--type", "hypergraph", "-H", "shuffled", "-R", "lines", "-d", "init.dense")
    assert kbmira(*moved, "-J3", "--no-shuffle", "-o", "moved") == 0
    for place, sentence in enumerate(order):
        (here / "shuffled" / f"{place}.gz").rename(here / "hg" / f"{sentence}.gz")
    assert kbmira(*GRAPHS, "-J3", "-r", "5", "-o", "out") == 0
    assert (here / "out").read_bytes() == (here / "moved").read_bytes()
    assert kbmira(*GRAPHS, "-J3", "--no-shuffle", "-o", "plain") == 0
    assert (here / "out").read_bytes() != (here / "plain").read_bytes()


@pytest.mark.parametrize(
    "words",
    [
        ("--model-bg",),
        ("--safe-hope",),
        ("--cparam", "0.5"),
        ("--decay", "0.5"),
        ("--hg-prune", "1"),
    ],
)
def test_options_change_the_weights(here: Path, words: tuple[str, ...]) -> None:
    if words == ("--safe-hope",):
        # It has a meaning where the model's scores are large beside BLEU.
        Path("init.dense").write_text("LM0= 4\nTM0= 0.01\nTM0= 0.25\n")
    common = (*GRAPHS, "-r", "1", "-J", "2")
    assert kbmira(*common, "-o", "plain") == 0
    assert kbmira(*common, *words, "-o", "out") == 0
    assert (here / "out").read_bytes() != (here / "plain").read_bytes()


def test_starts_from_sparse_weights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("init.sparse").write_text("wt_x 0.5\nother_y -0.25\n")
    words = ("-s", "init.sparse", "-C", "1e-9", "-J1", "-r1", "--streaming-out", "-o", "out")
    assert kbmira(*GRAPHS, *words) == 0
    rows = [line.split() for line in (here / "out").read_text().splitlines()]
    found = {name: float(value) for name, value in rows}
    scale = found["F0"] / 0.5
    assert found["wt_x"] == pytest.approx(0.5 * scale, rel=1e-4)
    assert found["other_y"] == pytest.approx(-0.25 * scale, rel=1e-4)
    shown = capsys.readouterr()
    assert "Found 2 initial sparse features" in shown.err
    assert shown.out.splitlines() == ["0:0.5 1:0.01 2:0.25 6:0.5 7:-0.25"] * N_SENTENCES


def test_several_references_count_together(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A second reference makes matches of all that the first has not."""
    Path("other").write_bytes(b"".join(b" ".join(WORDS) + b"\n" for _ in range(N_SENTENCES)))
    Path("init.dense").write_text("LM0= 0.1\nTM0= 1\nTM0= 0.1\n")
    found = []
    for words in ((), ("-R", "other")):
        # Steps are too small to change a translation.
        assert kbmira(*GRAPHS, *words, "-r1", "-J1", "-C1e-9", "-o", "out") == 0
        found.append(float(re.findall(r"Best BLEU = (\S+)", capsys.readouterr().err)[0]))
    assert 0 < found[0] < found[1]


def without(name: str) -> tuple[str, ...]:
    place = GRAPHS.index(name)
    return GRAPHS[:place] + GRAPHS[place + 2 :]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (without("--hgdir"), 2, "--hgdir"),
        (without("-R"), 2, "--reference"),
        (without("-d"), 2, "--dense-init"),
        ((*GRAPHS, "--hg-prune", "-1"), 2, "--hg-prune"),
        ((*GRAPHS, "--streaming"), 2, "--no-shuffle"),
        ((*GRAPHS, "--sctype", "TER"), 2, "BLEU"),
        ((*GRAPHS, "--scconfig", "reflen:closest"), 2, "--scconfig"),
        ((*without("-d"), "-d", "numbers"), 1, "name= value"),
        ((*without("-d"), "-d", "others"), 1, "LM1, and no search graph in hg has"),
        ((*GRAPHS, "-s", "twice"), 1, "both twice and init.dense have a weight of LM0"),
        ((*without("-d"), "-d", "huge"), 1, "scale them down"),
        ((*GRAPHS, "-s", "huge.sparse"), 1, "scale them down"),
        ((*without("-R"), "-R", "short"), 1, "sentence 11, but short has only 11 lines"),
        ((*without("-R"), "-R", "long"), 1, "no search graph 12 in hg: long has 13 lines"),
        ((*without("-R"), "-R", "absent"), 1, "absent"),
        ((*GRAPHS, "-R", "short"), 1, "short has 11 lines, and ref has 12"),
        ((*without("--hgdir"), "-H", "absent"), 1, "absent: No such file or directory"),
        ((*without("--hgdir"), "-H", "empty"), 1, "empty: the directory has no search graphs"),
        ((*without("--hgdir"), "-H", "named"), 1, "named/notes.txt: not a search graph"),
        ((*without("--hgdir"), "-H", "doubled"), 1, "doubled/0.gz: sentence 0 has another file, 0"),
        ((*without("--hgdir"), "-H", "broken"), 1, "broken/0"),
        ((*without("--hgdir"), "-H", "vast"), 1, "vast/3.gz: no derivation"),
        ((*without("--hgdir"), "-H", "doubling"), 1, "sentence 4: the best derivation"),
    ],
)
def test_usage_and_data_errors(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    lines = Path("ref").read_bytes().splitlines(keepends=True)
    Path("short").write_bytes(b"".join(lines[:-1]))
    Path("long").write_bytes(b"".join([*lines, b"w1\n"]))
    Path("numbers").write_text("0.5 0.25 0.25\n")
    Path("others").write_text("LM1= 0.5\nTM0= 0.25\nTM0= 0.25\n")
    Path("twice").write_text("LM0 0.5\n")
    Path("huge").write_text("LM0= 1e300\nTM0= 0.25\nTM0= 0.25\n")
    Path("huge.sparse").write_text("wt_x -1e39\n")
    vast = [[Edge((b"a",), 1, (3e38, 0.0, 0.0))], [Edge((0, 0, 0, 0, 0), 1, (0.0, 0.0, 0.0))]]
    doubling = [[Edge((b"a",), 1)], *([Edge((head, head), 1, (1.0,) * 3)] for head in range(40))]
    for name, number, nodes in (("vast", 3, vast), ("doubling", 4, doubling)):
        shutil.copytree("hg", name)
        write_hypergraph(Path(name) / f"{number}.gz", NAMES, nodes)
    for name, files in {
        "empty": (),
        "named": ("notes.txt",),
        "doubled": ("0", "0.gz"),
        "broken": tuple(map(str, range(N_SENTENCES))),
    }.items():
        Path(name).mkdir()
        for file in files:
            (Path(name) / file).write_text("# target ||| features ||| source-covered\n1 1\n")
    assert kbmira(*words, "-r1", "-J1", "-o", "out") == code
    shown = capsys.readouterr().err.splitlines()
    assert message in shown[-1]
    assert shown[-1].startswith("kbmira: ")
    assert not (here / "out").exists()
