"""Where files that only save time are kept, and that commands write nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from mosesplug import user_cache
from mosesplug.cli.main import main
from mosesplug.store.score_cache import ScoreCache, make_text_key
from mosesplug.user_cache import find_cache, open_score_directory


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"MOSESPLUG_CACHE_DIR": "/named"}, "/named"),
        ({"MOSESPLUG_CACHE_DIR": ""}, None),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/mosesplug"),
        ({"HOME": "/home/user"}, "/home/user/.cache/mosesplug"),
        ({"XDG_CACHE_HOME": "relative"}, None),
    ],
    ids=str,
)
def test_the_directory(
    variables: dict[str, str], place: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MOSESPLUG_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_cache() == (None if place is None else Path(place))


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*map(str, words)])
    return int(ended.value.code or 0)


GRAPH = (
    "# target ||| features ||| source-covered\n3 4\n# node 0\n1\n<s> ||| LM=-1 ||| 0\n"
    "# node 1\n2\n[0] a b ||| LM=-2 ||| 1\n[0] c ||| LM=-1 ||| 1\n"
    "# node 2\n1\n[1] </s> ||| LM=0 ||| 1\n"
)


@pytest.mark.parametrize(
    "words",
    [
        ["optimize", "--graphs", "graphs", "--refs", "refs", "--init", "init", "-o", "out"],
        [
            *("kbmira", "--type", "hypergraph", "--hgdir", "graphs", "--reference", "refs"),
            *("--dense-init", "init", "-o", "out"),
        ],
    ],
    ids=lambda words: words[0],
)
def test_graphs_are_kept_in_the_cache_only(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOSESPLUG_CACHE_DIR", str(tmp_path / "cache"))
    Path("graphs").mkdir()
    for number in range(2):
        Path("graphs", str(number)).write_text(GRAPH)
    Path("refs").write_text("a b\nc\n")
    Path("init").write_text("LM= 1\n")
    if words[0] == "optimize":
        assert run(*words) == 0
    else:
        from mosesplug.cli.moses.kbmira import main as kbmira

        monkeypatch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as ended:
            kbmira()
        assert not ended.value.code
    assert {path.name for path in tmp_path.iterdir()} == {"graphs", "refs", "init", "out", "cache"}
    assert {path.name for path in Path("graphs").iterdir()} == {"0", "1"}
    capsys.readouterr()
    assert run("cache") == 0
    assert " 1 " in capsys.readouterr().out  # two graphs of one content
    assert run("cache", "--clear") == 0
    assert not [path for path in Path("cache").rglob("*") if path.is_file()]


def test_scores_that_were_used_least_recently_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOSESPLUG_CACHE_DIR", str(tmp_path))
    key = make_text_key([b"the house"])
    caches = [ScoreCache(tmp_path / "scores", "COMET", version, 1) for version in "123"]
    for time, cache in enumerate(caches):
        cache.add([key], np.ones((1, 1)))
        os.utime(cache.path, (time, time))
    sizes = [cache.path.stat().st_size for cache in caches]
    monkeypatch.setattr(user_cache, "_SCORE_LIMIT", sum(sizes))
    assert open_score_directory() == tmp_path / "scores"
    assert all(cache.path.exists() for cache in caches)
    assert caches[0].find([key])[0].all()
    monkeypatch.setattr(user_cache, "_SCORE_LIMIT", sum(sizes) - 1)
    open_score_directory()
    assert [cache.path.exists() for cache in caches] == [True, False, True]
