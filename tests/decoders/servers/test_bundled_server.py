"""The bundled decoder as a server, on the demo system."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.moses.ini import read_moses_ini
from formats.weights.files import WeightGroup, read_show_weights
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.protocol import BatchTask
from mosesplug.decoders.servers.exactness import (
    change_weights,
    count_differing_lists,
    require_exact,
)
from mosesplug.decoders.servers.server import ServerDecoder
from mosesplug.errors import DecoderError
from mosesplug.extras.phrase_decoder.model_file import read_features, show_weights
from tests.tuning.bundled import DEMO, write_bundled_decoder, write_demo_config

LINES = (DEMO / "tune.tarvian").read_bytes().splitlines()
CHOSEN = (17, 3, 40, 8)


@pytest.fixture
def decoder(tmp_path: Path) -> MosesDecoder:
    program = write_bundled_decoder(tmp_path / "decoder")
    return MosesDecoder(program, ("-stack", "20", "-v", "1"))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo system, with what the chosen lines and ``vcera`` need of its tables."""
    directory = tmp_path_factory.mktemp("demo")
    lines = [*(LINES[number] for number in CHOSEN), b"vcera"]
    (directory / "tarvian").write_bytes(b"\n".join(lines))
    return write_demo_config(directory)


@pytest.fixture(scope="module")
def weights(config: Path) -> ModelWeights:
    shown = show_weights(read_features(read_moses_ini(config)))
    return ModelWeights(read_show_weights(shown).groups)


def test_it_is_exact(
    decoder: MosesDecoder, config: Path, weights: ModelWeights, tmp_path: Path
) -> None:
    sentences = [(number, LINES[number]) for number in CHOSEN]
    sentences += [(1, b""), (2, "ünknown <&>".encode())]
    notes: list[str] = []
    fresh = ProcessDecoder(decoder, BatchTask(config, tmp_path, 30))
    with ServerDecoder(decoder, config, tmp_path, 30, workers=2, note=notes.append) as online:
        found = require_exact(online, fresh, sentences, weights, config=config, strict=True)
        assert found.note is None
        first = online.decode(sentences, weights)
        second = online.decode(sentences, change_weights(weights))
        expected = fresh.decode(sentences, weights)
    assert count_differing_lists(first, expected) == 0
    assert [part.scores.tolist() for part in first] == [part.scores.tolist() for part in expected]
    assert 0 < count_differing_lists(first, second) <= 4
    assert [part.text(0) for part in first[-2:]] == [b"", "ünknown <&>".encode()]
    # It listens on this machine only.
    assert notes == []
    assert b"listening on 127.0.0.1:" in (tmp_path / "server1.err").read_bytes()


def test_rejected_requests_raise_errors(
    decoder: MosesDecoder, config: Path, weights: ModelWeights, tmp_path: Path
) -> None:
    other = ModelWeights((*weights.groups, WeightGroup("LM7", (1.0,))))
    with ServerDecoder(decoder, config, tmp_path, 5) as online:
        online.decode([(0, b"vcera")], weights)
        with pytest.raises(DecoderError, match=r"sentence 3: .* LM7, which has no feature"):
            online.decode([(3, b"vcera")], other)
        with pytest.raises(DecoderError, match=r"sentence 4: .* cannot be a word"):
            online.decode([(4, b"a ||| b")], weights)
        assert len(online.decode([(0, b"vcera")], weights)) == 1
