"""Damaged model files: an answer or a FormatError, never another exception."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.moses.ini import parse_moses_ini
from mosesplug.extras.phrase_decoder.language_model import read_arpa
from mosesplug.extras.phrase_decoder.model_file import read_features
from mosesplug.extras.phrase_decoder.phrase_table import read_phrase_table, read_reordering

MODEST = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
PIECES = [b"\n", b"\t", b" ", b"|||", b"-", b"1", b"nan", b"inf", b"\\2-grams:", b"<s>", b"\xff\0"]
CUTS = st.tuples(st.floats(0, 1), st.integers(0, 12), st.sampled_from([b"", *PIECES]))


def damage(data: bytes, cuts: list[tuple[float, int, bytes]]) -> bytes:
    """``data`` with some stretches replaced."""
    for place, length, new in cuts:
        start = int(place * len(data))
        data = data[:start] + new + data[start + length :]
    return data


@MODEST
@given(cuts=st.lists(CUTS, min_size=1, max_size=3))
def test_language_models(
    random_arpa: bytes, tmp_path: Path, cuts: list[tuple[float, int, bytes]]
) -> None:
    path = tmp_path / "lm.arpa"
    path.write_bytes(damage(random_arpa, cuts))
    try:
        model = read_arpa(path)
    except FormatError:
        return
    words = np.arange(len(model.vocabulary), dtype=np.int32)
    scores, _ = model.advance(np.full(len(words), model.start_state, dtype=np.int32), words)
    assert np.isfinite(scores).all()


@MODEST
@given(cuts=st.lists(CUTS, min_size=1, max_size=3))
def test_tables(tmp_path: Path, cuts: list[tuple[float, int, bytes]]) -> None:
    path = tmp_path / "table"
    path.write_bytes(damage(b"a ||| u v ||| 0.5 1e-3 ||| 0-0\nb c ||| w ||| 1 2 |||\n" * 2, cuts))
    wanted = {b"a", b"b c"}
    try:
        pairs = read_phrase_table(path, 2, wanted)
        table = read_reordering(path, 2, {(pair.source, pair.target) for pair in pairs})
    except FormatError:
        return
    for scores in [*(pair.scores for pair in pairs), *table.values()]:
        assert len(scores) == 2
        assert np.isfinite(scores).all()


@MODEST
@given(cuts=st.lists(CUTS, min_size=1, max_size=3))
def test_configurations(random_ini: bytes, cuts: list[tuple[float, int, bytes]]) -> None:
    try:
        features = read_features(parse_moses_ini(damage(random_ini, cuts), "moses.ini"))
    except FormatError:
        return
    assert np.isfinite(features.weights).all()


@pytest.fixture
def random_arpa(random_system: Callable[..., Any]) -> bytes:
    return bytes((random_system(1, order=2).directory / "lm.arpa").read_bytes())


@pytest.fixture
def random_ini(random_system: Callable[..., Any]) -> bytes:
    return bytes(random_system(1).ini.read_bytes())
