"""Weights of any format, told by content."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.weights.any_format import parse_weights, read_weights
from formats.weights.files import WeightGroup
from formats.weights.weight_format import FORMATS

INI = b"""\
# a system
[feature]
UnknownWordPenalty
PhraseDictionaryMemory name=TM0 num-features=3 tuneable-components=true,false,true
KENLM name=LM0
Distortion name=D0 tuneable=false
WordTranslationFeature name=WT
[weight]
LM0= 0.5  # of the language
TM0= 0.1 0.2 0.3
D0= 4
WT_a~b= 7
[weight-file]
sparse
"""

TEXTS = {
    "moses.ini": INI,
    "dense": b"# mine\nLM0= 0.5\nTM0= 0.1 0.3\n",
    "show-weights": b"chatter of a decoder\nLM0= 0.5\nTM0= 0.1 UNTUNEABLECOMPONENT 0.3\nWT=\n",
    "overwrite": b"LM0= 0.5 TM0= 0.1 x 0.3\n",
    "sparse": b"# mine\nWT_a~b 7\nTM_0 1\n",
    "graph": b"LM0 0.5\nTM0_1 0.1\nTM0_2 0.3\nUnknownWordPenalty0 1\nWT_a~b 7\n",
    "kbmira": b"F0 0.5\nF1 0.1\nWT_a~b 7\n",
    "init.opt": b"0.5 0.1\n0 0\n1 1\n",
    "weights.txt": b"0.5 0.1 \n",
    "json": b'{"dense": {"LM0": 0.5, "TM0": [0.1, null, 0.3]}, "sparse": {"WT_a~b": 7}}\n',
    "json-flat": b'{"LM0": 0.5, "TM0": [0.1, 0.3], "WT_a~b": 7}\n',
    "equals": b"LM0=0.5 TM0_1=0.1\n# mine\nTM0_2=0.3 WT_a~b=7\n",
    "yaml": b'# mine\nLM0: 0.5\nTM0: [0.1, 0.3]\n"WT_a~b": 7.0\n',
    "tsv": b"feature\tweight\nLM0\t0.5\nTM0_1\t0.1\nTM0_2\t0.3\nWT_a~b\t7\n",
}


def test_every_format_is_detected_by_content() -> None:
    assert tuple(TEXTS) == tuple(name for name in FORMATS)
    for name, text in TEXTS.items():
        found = parse_weights(text, "file")
        assert found.format == name
        if "LM0" in text.decode():
            assert found.groups == {"LM0": (0.5,), "TM0": (0.1, 0.3)}
            assert found.numbers == ()
        if "WT_a~b" in text.decode() and name != "moses.ini":
            assert found.sparse["WT_a~b"] == 7
    dense = parse_weights(b"LM0= 0.5\r\nLM0= 0.25\r\n", "file")
    assert (dense.format, dense.groups) == ("dense", {"LM0": (0.5, 0.25)})
    init = parse_weights(TEXTS["init.opt"], "file")
    assert (init.numbers, init.minima, init.maxima) == ((0.5, 0.1), (0, 0), (1, 1))
    assert parse_weights(TEXTS["weights.txt"], "file").numbers == (0.5, 0.1)
    assert parse_weights(b"A= x 2", "file").show.groups == (WeightGroup("A", (None, 2.0)),)
    graph = parse_weights(TEXTS["graph"], "file")
    assert (graph.sparse, graph.fixed_weights) == ({"WT_a~b": 7}, {"UnknownWordPenalty0": 1})
    kbmira = parse_weights(TEXTS["kbmira"], "file")
    assert (kbmira.numbers, kbmira.sparse) == ((0.5, 0.1), {"WT_a~b": 7})
    assert parse_weights(TEXTS["sparse"], "file").sparse == {"WT_a~b": 7, "TM_0": 1}


def test_sparse_features_of_an_equals_sign() -> None:
    for others, name in ((b"", "sparse"), (b"F0 1\n", "kbmira"), (b"LM0 1\n", "graph")):
        found = parse_weights(others + b"WT_=~= 2\nTWI_= 3\nTWI_a 4\n", "file")
        assert found.format == name
        assert found.sparse == {"WT_=~=": 2, "TWI_=": 3, "TWI_a": 4}
    assert parse_weights(b"A_b= 1\nC= 2\n", "file").format == "dense"


def test_of_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ini = tmp_path / "moses.ini"
    ini.write_bytes(INI)
    found = read_weights(ini)
    assert found.show.groups == (
        WeightGroup("TM0", (0.1, None, 0.3)),
        WeightGroup("LM0", (0.5,)),
    )
    assert found.show.untuneable == ("UnknownWordPenalty0", "D0")
    assert found.show.sparse == ("WT",)
    assert found.fixed_weights == {"UnknownWordPenalty0": 1.0, "TM0_2": 0.2, "D0": 4}
    with pytest.raises(FormatError, match=r"moses.ini:14: the file sparse of \[weight"):
        _ = found.all_sparse
    # In the current directory, and rather beside the configuration; [weight] outweighs both.
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    Path("sparse").write_text("WT_a~b 1\nWT_c~d 2\n")
    assert found.all_sparse == {"WT_a~b": 7, "WT_c~d": 2}
    (tmp_path / "sparse").write_text("WT_e~f 3\n")
    assert read_weights(ini).all_sparse == {"WT_a~b": 7, "WT_e~f": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\n# nothing\n", "f: the file has no weights"),
        (b"0 ||| the house ||| LM0= -1 ||| -1\n", "LM0= -1 ||| -1' is not a line of a file"),
        (b"LM0 0.5 0.1\n", "f: 'LM0 0.5 0.1' is not a line of a file of weights"),
        (b"the red house\n", "f: 'the red house' is not a line of a file of weights. Give Name= "),
        (b"LM0= 0.5\nTM0 0.5\n", "f:2: 'TM0 0.5' is not a dense weight"),
        (b"0.5 nan\n", "f:1: the weight is 'nan'"),
        (b"1 2\n3 4\n", "f: 2 lines of numbers. Give three lines"),
        (b"A= 1 B= C= 2\n", "f:1: -weight-overwrite: the feature B has no value"),
        (b"[ttable-file]\n0 0 0 1 t\n", "belongs to the old format"),
    ],
)
def test_other_files_are_rejected(text: bytes, message: str) -> None:
    with pytest.raises(FormatError) as error:
        parse_weights(text, "f")
    assert message in str(error.value)


def test_formats_that_will_not_do() -> None:
    message = (
        r"in the format sparse are not accepted here\. Give one of the formats dense, init.opt"
    )
    with pytest.raises(FormatError, match=message):
        parse_weights(TEXTS["sparse"], "f", ("dense", "init.opt"))


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for name, text in TEXTS.items():
        writer = threading.Thread(target=pipe.write_bytes, args=(text,))
        writer.start()
        assert read_weights(pipe).format == name
        writer.join()


def test_endless_weight_files_are_rejected(tmp_path: Path) -> None:
    """As a configuration names it, and not the person who runs it."""
    path = tmp_path / "moses.ini"
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", "pipe", "."):
        path.write_bytes(b"[weight-file]\n%s\n[weight]\nLM0= 1\n" % name.encode())
        with pytest.raises(FormatError, match="this is not a regular file"):
            _ = read_weights(path).all_sparse
