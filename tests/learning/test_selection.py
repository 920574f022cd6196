"""Cut-offs of features in ``optimize``: by patterns of names and by counts of sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosesplug
from formats.weights.named import read_named_weights
from mosesplug.cli.main import main
from mosesplug.errors import UsageError
from mosesplug.learning.data import read_data
from mosesplug.learning.optimize import bind_optimizer, optimize
from mosesplug.settings.learning import LearningSettings


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sentences 0 to 3: each hypothesis has one WT feature of its words and one of its sentence."""
    monkeypatch.chdir(tmp_path)
    rng, lines = np.random.default_rng(2), []
    for sentence in range(4):
        for wrong in range(5):
            words = ["a", "b", "c", "d", "e"][wrong:] + ["x"] * wrong
            values = f"LM= {-wrong + rng.normal():.3f} WT_{wrong}= 1 PP_{sentence}~{wrong}= 1"
            lines.append(f"{sentence} ||| {' '.join(words)} ||| {values} ||| 0\n")
    Path("lists").write_text("".join(lines))
    Path("refs").write_text("a b c d e\n" * 4)
    return tmp_path


@pytest.mark.parametrize("algorithm", ["kbmira", "pro", "rank-all", "xbleu", "arow", "rampion"])
def test_cut_off_features_are_not_learned(lists: Path, algorithm: str) -> None:
    given = {"references": "refs", "algorithm": algorithm}
    plain = learned(**given)
    assert any(name.startswith("PP_") for name in plain)
    assert any(name.startswith("WT_") for name in plain)
    assert not any(name.startswith("PP_") for name in learned(sparse_min_count=2, **given))
    most = learned(sparse_max=5, **given)
    assert most <= {"LM", *(f"WT_{wrong}" for wrong in range(5))}
    assert not any(name.startswith("WT_") for name in learned(active=["LM", "PP_*"], **given))
    assert not any(name.startswith("WT_") for name in learned(drop_feature=["WT_*"], **given))


def learned(**arguments: object) -> set[str]:
    fit = mosesplug.optimize("lists", **arguments)  # type: ignore[arg-type]
    return {name.split("_0")[0] if name == "LM_0" else name for name, w in fit.weights.items() if w}


def test_counts_say_how_many_features_they_leave(lists: Path) -> None:
    data = LearningSettings(nbest=(Path("lists"),), references=Path("refs"), algorithm="kbmira")

    def explain(**given: Any) -> str:
        settings = replace(data, **given)
        return str(optimize(settings, bind_optimizer(settings)).notes[0])

    assert (
        explain(sparse_min_count=2) == "--sparse-min-count: 5 of the 25 sparse features are tuned"
    )
    both = explain(sparse_min_count=2, sparse_max=3, active=("WT_*",))
    assert both == "--sparse-min-count and --sparse-max: 3 of the 25 sparse features are tuned"
    dense = replace(data.lists, drop_feature=("WT_*", "PP_*"))
    assert explain(sparse_max=3, lists=dense) == "--sparse-max: no hypothesis has a sparse feature"
    with pytest.raises(UsageError, match="--sparse-max would have no effect: mert tunes dense"):
        explain(sparse_max=3, algorithm="mert")
    with pytest.raises(UsageError, match="name at least one, or leave --active out"):
        explain(active=())


def test_the_command_takes_the_same_cut_offs(lists: Path) -> None:
    words = "optimize --nbest lists --refs refs --algorithm kbmira -o out --sparse-min-count 2"
    with pytest.raises(SystemExit) as end:
        main(words.split())
    assert not end.value.code
    fit = mosesplug.optimize("lists", references="refs", algorithm="kbmira", sparse_min_count=2)
    written = read_named_weights(Path("out")).all_sparse
    assert {name for name, weight in written.items() if weight} == {
        name for name, weight in fit.weights.items() if weight and not name.startswith("LM")
    }


def test_patterns_that_match_nothing_and_counts_of_graphs_are_refused(lists: Path) -> None:
    with pytest.raises(UsageError, match=r"active: there is no feature WX_\*; .* mean WT_\*"):
        mosesplug.optimize("lists", references="refs", algorithm="kbmira", active=["LM", "WX_*"])
    with pytest.raises(UsageError, match=r"drop_feature .*: there is no feature WX_"):
        mosesplug.optimize("lists", references="refs", drop_feature=["WX_*"])
    settings = LearningSettings(graphs=(Path("graphs"),), references=Path("refs"), sparse_max=3)
    with pytest.raises(UsageError, match="count sentences of n-best lists, not of search graphs"):
        read_data(settings)
