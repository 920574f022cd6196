"""The bundled decoder as a server, on the demo system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from formats.weights.files import WeightGroup, read_show_weights
from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.exactness import change_weights, count_differing_lists, require_exact
from mosesplug.decoders.moses import MosesDecoder
from mosesplug.decoders.server import ServerDecoder
from mosesplug.errors import DecoderError

DEMO = Path(__file__).parents[2] / "moses-config" / "demo"
CODE = "from mosesplug.cli.moses.decoder import main; main()"


@pytest.fixture
def decoder(tmp_path: Path) -> MosesDecoder:
    program = tmp_path / "decoder"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{CODE}" "$@"\n')
    program.chmod(0o755)
    return MosesDecoder(program, ("-stack", "20", "-v", "1"))


@pytest.fixture
def weights(decoder: MosesDecoder) -> ModelWeights:
    shown = subprocess.run(
        decoder.show_weights(DEMO / "moses.ini"), stdout=subprocess.PIPE, check=True
    )
    return ModelWeights(read_show_weights(shown.stdout).groups)


def test_it_is_exact(decoder: MosesDecoder, weights: ModelWeights, tmp_path: Path) -> None:
    lines = (DEMO / "tune.tarvian").read_bytes().splitlines()
    sentences = [(number, lines[number]) for number in (17, 3, 40, 8)]
    sentences += [(1, b""), (2, "ünknown <&>".encode())]
    notes: list[str] = []
    fresh = ProcessDecoder(decoder, DEMO / "moses.ini", tmp_path, 30)
    with ServerDecoder(
        decoder, DEMO / "moses.ini", tmp_path, 30, workers=2, note=notes.append
    ) as online:
        config = DEMO / "moses.ini"
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
    decoder: MosesDecoder, weights: ModelWeights, tmp_path: Path
) -> None:
    other = ModelWeights((*weights.groups, WeightGroup("LM7", (1.0,))))
    with ServerDecoder(decoder, DEMO / "moses.ini", tmp_path, 5) as online:
        online.decode([(0, b"vcera")], weights)
        with pytest.raises(DecoderError, match=r"sentence 3: .* LM7, which has no feature"):
            online.decode([(3, b"vcera")], other)
        with pytest.raises(DecoderError, match=r"sentence 4: .* cannot be a word"):
            online.decode([(4, b"a ||| b")], weights)
        assert len(online.decode([(0, b"vcera")], weights)) == 1
