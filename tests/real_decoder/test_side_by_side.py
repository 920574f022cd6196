"""``mert-moses`` and ``mert-moses.pl`` with the same arguments: files, features, first decoding."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.nbest.files import read_nbest
from formats.weights.any_format import read_weights
from formats.weights.files import read_show_weights
from tests.real_decoder import inputs
from tests.real_decoder.programs import NBEST, Programs

# What the script's programs leave, and what only this program has.
THEIRS = re.compile(
    r"(run\d+\.)?(extract\.(err|out)|mert\.(log|out))|extractor\.sh|init\.opt|weights\.txt"
    r"|run\d+\.((features|scores)\.dat|mira\.out|pro\.(data|err|out)|init\.pro|merge-weights"
    rf"|best{NBEST}\.out\.comb\.gz)|run3\.init\.opt|eval\.out"
)
OURS = re.compile(
    r"features\.list\.(err|made-from\.json)|nbests\.lmdb/.*|settings\.toml|summary\.json"
    r"|tuning\.lock|run\d+\.decoder\.err"
)

Mode = tuple[tuple[str, ...], Callable[[Any], Any]]
PLAIN = lambda system: system.config  # noqa: E731
FEW_EPOCHS = ("--batch-mira-args", "-J 5")
MODES: dict[str, Mode] = {
    "mert": ((), PLAIN),
    "kbmira": (("--batch-mira", "--return-best-dev"), PLAIN),
    "sparse-kbmira": (("--batch-mira",), inputs.sparse),
    "lattice-samples": (("--lattice-samples", "5"), PLAIN),
    "hg-mira": (("--hg-mira", *FEW_EPOCHS), PLAIN),
    "hierarchical": (("--batch-mira",), inputs.hierarchical),
    "hierarchical-graphs": (("--hg-mira", *FEW_EPOCHS), inputs.hierarchical),
    "confusion-networks": (("--inputtype", "1"), inputs.confusion_networks),
    "lattices": (("--inputtype", "2", "--historic-bests"), inputs.lattices),
    "pro": (("--pairwise-ranked",), PLAIN),
}


def names(directory: Path, known: re.Pattern[str]) -> set[str]:
    found = (
        path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()
    )
    return {name for name in found if not known.fullmatch(name)}


@pytest.mark.parametrize("mode", MODES)
def test_files(programs: Programs, mode: str) -> None:
    more, make = MODES[mode]
    made = make(programs.system)
    config, source = made if isinstance(made, tuple) else (made, None)
    flags = {"flags": "-v 0"} if mode.startswith("hierarchical") else {}
    mertdir = programs.link_programs() if mode == "pro" else None
    theirs = programs.script(
        "theirs", *more, config=config, source=source, mertdir=mertdir, **flags
    )
    ours = programs.ours("ours", *more, config=config, source=source, **flags)
    common = names(theirs, THEIRS)
    extra = (
        {f"run{n}.best{NBEST}.out.gz" for n in (1, 2)}
        if "graphs" in mode or "hg" in mode
        else set()
    )
    assert names(ours, OURS) - extra == common
    for name in ("run1.out", "features.list"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    for name in ("run1.dense", "run1.init.opt"):
        one, other = (read_weights(place / name) for place in (ours, theirs))
        assert one.show.names == other.show.names
        assert (one.numbers, one.show.values) == (other.numbers, other.show.values)
    if not extra:
        _compare_first_lists(ours, theirs)
    if mode == "pro":
        _compare_learned(ours, theirs)
    for work in (ours, theirs):
        _check_result(programs, work, is_last="--return-best-dev" not in more)


def _compare_learned(ours: Path, theirs: Path) -> None:
    """From the same lists, with other random pairs, weights are nearly the same."""
    one, other = (
        np.array(read_weights(work / "run2.dense").show.values) for work in (ours, theirs)
    )
    assert one @ other > 0.9 * np.linalg.norm(one) * np.linalg.norm(other)


def _compare_first_lists(ours: Path, theirs: Path) -> None:
    """The same hypotheses, but for the last digit of their scores. Samples are random."""
    one = read_nbest(ours / f"run1.best{NBEST}.out.gz")
    merged = theirs / f"run1.best{NBEST}.out.comb.gz"
    if merged.is_file():
        other = read_nbest(merged)
        assert np.bincount(one.sentence_ids).tolist() == np.bincount(other.sentence_ids).tolist()
        return
    other = read_nbest(theirs / f"run1.best{NBEST}.out.gz")
    texts = ([block.text(row) for row in range(len(block))] for block in (one, other))
    assert next(texts) == next(texts)
    assert np.array_equal(one.dense, other.dense)
    assert one.scores == pytest.approx(other.scores, rel=1e-4, abs=1e-4)


def _check_result(programs: Programs, work: Path, *, is_last: bool) -> None:
    """Moses loads the tuned configuration and announces the weights of an iteration."""
    shown = read_show_weights(programs.decode("-config", work / "moses.ini", "-show-weights"))
    text = (work / "run2.weights.txt").read_text().split()
    if is_last and text != ["not", "used"]:
        assert shown.values == pytest.approx(tuple(map(float, text)), abs=1e-6)
    assert any(shown.values)
