"""Scores that a command computed, in a file that only grows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mosesplug.errors import StoreError
from mosesplug.store.score_cache import ScoreCache, make_text_key

KEYS = [make_text_key([b"%d" % k]) for k in range(100)]
ROWS = np.random.default_rng(1).normal(size=(100, 2))


def cache(place: Path, version: str = "1", width: int = 2) -> ScoreCache:
    return ScoreCache(place, "COMET", version, width)


def known(scores: ScoreCache) -> list[int]:
    is_known, values = scores.find(KEYS)
    assert (values[is_known] == ROWS[is_known]).all()
    assert not values[~is_known].any()
    return np.flatnonzero(is_known).tolist()


def test_scores_come_back_bit_for_bit(tmp_path: Path) -> None:
    one, other = cache(tmp_path), cache(tmp_path)
    assert known(one) == []
    one.add(KEYS[:10], ROWS[:10])
    other.add(KEYS[50:53], ROWS[50:53])
    expected = [*range(10), 50, 51, 52]
    assert known(one) == known(other) == known(cache(tmp_path)) == expected
    assert known(cache(tmp_path, "2")) == []
    assert cache(tmp_path, width=1).find(KEYS)[0].sum() == 0
    assert one.find([])[1].shape == (0, 2)
    # Each text counts once, and not where it was added.
    assert (one.n_known, other.n_known) == (3, 10)


def test_a_killed_writer_loses_no_whole_block(tmp_path: Path) -> None:
    scores = cache(tmp_path)
    scores.add(KEYS[:3], ROWS[:3])
    whole = scores.path.stat().st_size
    scores.add(KEYS[3:5], ROWS[3:5])
    data = scores.path.read_bytes()
    for size in range(whole, len(data)):
        scores.path.write_bytes(data[:size])
        assert known(cache(tmp_path)) == [0, 1, 2]
    later = cache(tmp_path)
    later.add(KEYS[7:8], ROWS[7:8])
    assert known(later) == known(cache(tmp_path)) == [0, 1, 2, 7]
    for size in range(len(scores._header)):
        scores.path.write_bytes(data[:size])
        assert known(cache(tmp_path)) == []


def test_damage_is_an_error(tmp_path: Path) -> None:
    scores = cache(tmp_path)
    scores.add(KEYS[:3], ROWS[:3])
    data = bytearray(scores.path.read_bytes())
    data[-1] ^= 1
    scores.path.write_bytes(data)
    with pytest.raises(StoreError, match=r"is damaged at byte .*: delete it"):
        cache(tmp_path).find(KEYS)
    scores.path.write_bytes(b"x" * len(data))
    with pytest.raises(StoreError, match="no file of scores: delete it"):
        cache(tmp_path).find(KEYS)
    scores.path.unlink()
    scores = cache(tmp_path)
    scores.add(KEYS[:3], ROWS[:3])
    assert known(scores) == [0, 1, 2]
    scores.path.write_bytes(b"")
    with pytest.raises(StoreError, match="has become shorter"):
        scores.find(KEYS)


def test_keys_tell_texts_apart() -> None:
    texts = [[b"ab", b"c"], [b"a", b"bc"], [b"abc"], [None, b"abc"], [b"", b"abc"], [b"-", b"abc"]]
    assert len({make_text_key(text) for text in texts}) == len(texts)
