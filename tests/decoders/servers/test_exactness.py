"""Servers whose lists differ from those of fresh processes are restarted or rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.servers.exactness import (
    InexactServerError,
    change_weights,
    require_exact,
)
from tests.decoders.batches import (
    BATCH,
    OTHERS,
    WEIGHTS,
    list_contents,
    make_process,
    make_server,
)

StandIn = Callable[..., MosesDecoder]
Pids = Callable[[], list[int]]
# Hypotheses score so alike with these that changed ones rank them otherwise.
ALIKE = ModelWeights((WeightGroup("LM0", (1.0,)), WeightGroup("TM0", (0.2, None))))


def test_a_server_that_scores_at_look_up_is_exact(
    stand_in: StandIn, tmp_path: Path, pids: Pids
) -> None:
    with make_server(stand_in(), tmp_path) as online:
        fresh = make_process(stand_in(), tmp_path)
        config = tmp_path / "moses.ini"
        found = require_exact(online, fresh, BATCH, WEIGHTS, config=config, strict=True)
        assert found.note is None
        assert not online.restart_each_batch
        assert len(pids()) == 2


def test_a_server_that_keeps_scores_is_restarted_for_each_batch(
    stand_in: StandIn, tmp_path: Path, pids: Pids
) -> None:
    decoder = stand_in("memory")
    fresh = make_process(stand_in(), tmp_path)
    with make_server(decoder, tmp_path, workers=2) as online:
        found = require_exact(online, fresh, BATCH, ALIKE, config=tmp_path / "moses.ini")
        assert found.is_warning
        assert found.note is not None
        assert "4 of 5 n-best lists" in found.note
        assert online.restart_each_batch
        before = len(pids())
        lists = [online.decode(BATCH, weights) for weights in (OTHERS, OTHERS, WEIGHTS)]
        assert len(pids()) == before + 4
    expected = [fresh.decode(BATCH, weights) for weights in (OTHERS, OTHERS, WEIGHTS)]
    assert list(map(list_contents, lists)) == list(map(list_contents, expected))
    with (
        make_server(decoder, tmp_path) as online,
        pytest.raises(InexactServerError, match="Allow the server to be restarted"),
    ):
        require_exact(online, fresh, BATCH, ALIKE, config=tmp_path / "moses.ini", strict=True)


def test_changed_weights_are_other_weights() -> None:
    changed = change_weights(WEIGHTS)
    assert [group.values for group in changed.groups] == [(0.25,), (-0.375, None)]
    assert [group.values for group in change_weights(changed).groups][1][1] is None
    zeros = replace(WEIGHTS, groups=(replace(WEIGHTS.groups[0], values=(0.0, 0.0)),))
    assert change_weights(zeros).groups[0].values == pytest.approx((0.05, 0.15))
