"""The program hgdecode, by hand and against Moses' own output."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.graphs.hypergraph import Edge, write_hypergraph
from mosesplug.cli.moses.hgdecode import main


def run(words: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """A graph of two translations, of which the dense weights choose the first."""
    nodes = [
        [Edge((b"<s>",), 0)],
        [
            Edge((0, b"a", b"b"), 1, (1.0, -1.0), ()),
            Edge((0, b"c"), 1, (0.5, 1 / 3), (("wt_c", 1.0),)),
        ],
        [Edge((1, b"</s>"), 1)],
    ]
    write_hypergraph(tmp_path / "0.gz", ["TM0_1", "TM0_2"], nodes)
    (tmp_path / "dense").write_text("TM0= 2\nTM0= 0.5\n")
    (tmp_path / "sparse").write_text("wt_c 3\n")
    return [str(tmp_path / name) for name in ("0.gz", "dense", "sparse")]


def test_dense_weights(files: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["-g", files[0], "-d", files[1]]) == 0
    said = capfd.readouterr()
    assert said.out == "<s> a b </s> \n"
    assert said.err == "WEIGHTS TM0_1=1 TM0_2=-1 \n"


def test_sparse_weights(files: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    words = [f"--hypergraph={files[0]}", f"--dense-init={files[1]}", f"--sparse-init={files[2]}"]
    assert run(words) == 0
    said = capfd.readouterr()
    assert said.out == "<s> c </s> \n"
    assert said.err == "WEIGHTS TM0_1=0.5 TM0_2=0.333333 wt_c=1 \n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "--hypergraph"),
        (["-g", "x", "-s", "x"], 2, "--dense-init"),
        (["-g", "none"], 1, "none: cannot be read"),
        (["-g", "none", "-g", "none"], 2, "given 2 times"),
    ],
)
def test_errors_are_one_line(
    words: list[str], code: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == code
    said = capfd.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize("sentence", [0, 24, 33])
def test_recorded(multi30k: Path, sentence: int, capfd: pytest.CaptureFixture[str]) -> None:
    forest = multi30k / "forest"
    graph = forest / "hypergraph" / f"{sentence}.gz"
    assert run(["--hypergraph", str(graph), "-d", str(forest / "init.dense")]) == 0
    assert capfd.readouterr().out == (forest / f"hgdecode.{sentence}.txt").read_text()
