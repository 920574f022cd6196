"""Weights of any file for the features of lists."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from formats.errors import FormatError
from formats.nbest.files import read_nbest_blocks
from formats.weights.any_format import read_weights
from mosesplug.features import FeatureSpace
from mosesplug.learning.weights import read_starting_weights, score_hypotheses

SPACE = FeatureSpace((("TM0", 2), ("LM0", 1)), ("S_a", "S_b"))

FILES = {
    "dense": "LM0= 3\nTM0= 1 2\n",
    "show": "LM0= 3\nU0 UNTUNEABLE\nTM0= 1 UNTUNEABLECOMPONENT 2\n",
    "overwrite": "LM0= 3 TM0= 1 2\n",
    "graph": "LM0 3\nTM0_1 1\nTM0_2 2\nUnknownWordPenalty0 1\n",
    "weights.txt": "1 2 3\n",
    "init.opt": "1 2 3\n0 0 0\n1 1 4\n",
    "moses.ini": "[feature]\nA name=TM0 tuneable-components=true,false,true\n"
    "[weight]\nTM0= 1 9 2\nLM0= 3\n",
}


def test_any_file_of_weights(tmp_path: Path) -> None:
    (tmp_path / "sparse").write_text("S_b 5\nS_c 6\n")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
        assert read_starting_weights(SPACE, tmp_path / name).weights.tolist() == [1, 2, 3, 0, 0]
        start = read_starting_weights(SPACE, tmp_path / name, tmp_path / "sparse")
        assert start.weights.tolist() == [1, 2, 3, 0, 5]
        if name == "init.opt":
            assert start.maxima is not None
            assert start.maxima.tolist() == [1, 1, 4, 0, 0]
        else:
            assert start.minima is None


def test_sparse_weights_of_a_configuration_count(tmp_path: Path) -> None:
    ini = tmp_path / "moses.ini"
    ini.write_text(FILES["moses.ini"] + "S_a= 4\n[weight-file]\nsparse\n")
    # Lists without sparse features need no sparse weights.
    assert read_starting_weights(FeatureSpace(SPACE.groups), ini).weights.tolist() == [1, 2, 3]
    with pytest.raises(FormatError, match=r"the file sparse of \[weight-file\] does not exist"):
        read_starting_weights(SPACE, ini)
    (tmp_path / "sparse").write_text("S_a 1\nS_b 5\n")
    assert read_starting_weights(SPACE, ini).weights.tolist() == [1, 2, 3, 4, 5]
    (tmp_path / "other").write_text("S_b 6\n")
    assert read_starting_weights(SPACE, ini, tmp_path / "other").weights.tolist() == [1, 2, 3, 0, 6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LM0= 3\n", "no weight of TM0, a feature of the lists. It names LM0"),
        ("LM0= 3\nTM0= 1 2 3\n", "3 weights of TM0, which has 2 values in the lists"),
        ("1 2\n", "2 weights, but the lists have 3 dense features. Give one for each of TM0_0, "),
        ("S_a 1\n", "no weight of TM0, a feature of the lists. It names no dense feature"),
    ],
)
def test_weights_of_other_features_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_starting_weights(SPACE, tmp_path / "file")


def test_blocks_of_a_list_are_scored_with_weights_out_of_a_pipe(tmp_path: Path) -> None:
    lines = [f"{n} ||| a ||| LM0= {n} TM0= 1 -1 S_a= 2 ||| 0\n" for n in range(3)]
    (tmp_path / "list").write_text("".join(lines))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("LM0= 3\nTM0= 1 2\n",))
    writer.start()
    given = read_weights(pipe)
    writer.join()
    blocks = list(read_nbest_blocks(tmp_path / "list", block_bytes=40))
    assert len(blocks) > 1
    scores = np.concatenate([score_hypotheses(block, given) for block in blocks])
    assert scores.tolist() == [-1, 2, 5]
