"""Conformance tests of decoders of mini-batches, which plug-ins share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.decoders.batch import BatchDecoder
from mosesplug.decoders.batch_process import CommandProcess, ProcessDecoder
from mosesplug.decoders.description import DecoderCommand, MosesDecoder
from mosesplug.decoders.protocol import BatchTask
from mosesplug.decoders.servers.server import ServerDecoder
from mosesplug.testing import DECODER_CHECKS, DecoderCase
from tests.decoders.batches import WEIGHTS

NBEST = 2
SCRIPT = """
import sys
weights = dict(line.split("= ") for line in open(sys.argv[1]))
lm, tm = (float(weights[name]) for name in ("LM0", "TM0"))
with open(sys.argv[3], "w") as lists:
    for number, line in enumerate(open(sys.argv[2])):
        words = line.split()
        found = [(lm * len(words) - tm * 2, words, 2), (lm * len(words) + tm, words[::-1], -1)]
        for score, text, value in sorted(found, reverse=True):
            line = f"{number} ||| {' '.join(text)} ||| LM0= {len(words)} TM0= {-value}"
            print(line, "|||", score, file=lists)
"""


def by_process(stand_in: MosesDecoder, directory: Path) -> BatchDecoder:
    return ProcessDecoder(stand_in, BatchTask(directory / "moses.ini", directory, NBEST))


def by_server(stand_in: MosesDecoder, directory: Path) -> BatchDecoder:
    return ServerDecoder(stand_in, directory / "moses.ini", directory, NBEST)


def by_command(stand_in: MosesDecoder, directory: Path) -> BatchDecoder:
    (directory / "decode.py").write_text(SCRIPT)
    words = (sys.executable, "-IS", str(directory / "decode.py"), "{weights}", "{input}", "{nbest}")
    return CommandProcess(
        DecoderCommand(words), BatchTask(directory / "moses.ini", directory, NBEST)
    )


@pytest.mark.parametrize("check", DECODER_CHECKS.values(), ids=DECODER_CHECKS.keys())
@pytest.mark.parametrize(
    "make", [by_process, by_server, by_command], ids=lambda make: make.__name__
)
def test_conformance(
    make: Callable[[MosesDecoder, Path], BatchDecoder],
    check: Callable[[DecoderCase], None],
    stand_in: Callable[..., MosesDecoder],
    tmp_path: Path,
) -> None:
    with make(stand_in(), tmp_path) as decoder:
        # The stand-in has a part of its score whose weight is in its configuration.
        constant = make is not by_command
        check(DecoderCase(decoder, (b"c a", b"x y z", b"b"), WEIGHTS, NBEST, constant))
