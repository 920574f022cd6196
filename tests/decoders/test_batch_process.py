"""A decoder run for each batch."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.protocol import BatchTask
from mosesplug.errors import DecoderError
from tests.decoders.batches import OTHERS, WEIGHTS

BATCH = [(41, b"c a"), (7, b"x y z"), (12, b"b")]


def decoder(stand_in: MosesDecoder, directory: Path, nbest: int = 2) -> ProcessDecoder:
    return ProcessDecoder(stand_in, BatchTask(directory / "moses.ini", directory, nbest))


def test_lists_are_returned_in_the_requested_order(
    stand_in: Callable[..., MosesDecoder], tmp_path: Path
) -> None:
    with decoder(stand_in(), tmp_path) as process:
        lists = process.decode(BATCH, WEIGHTS)
        again = process.decode(BATCH[::-1], WEIGHTS)
        assert process.decode([], WEIGHTS) == []
    assert [part.sentence_ids.tolist() for part in lists] == [[41, 41], [7, 7], [12]]
    assert [part.text(0) for part in lists] == [b"c a", b"x y z", b"b"]
    assert lists[0].groups == (("LM0", 1), ("TM0", 1))
    assert lists[0].dense.tolist() == [[-2.0, -2.0], [-2.5, 0.0]]
    # 0.5 * -2 - 0.25 * -2, and 2, the weight in the configuration, for what is not tuned.
    assert lists[0].scores.tolist() == [1.5, 0.75]
    assert [part.sentence_ids[0] for part in again] == [12, 7, 41]


def test_weights_reach_the_decoder(stand_in: Callable[..., MosesDecoder], tmp_path: Path) -> None:
    with decoder(stand_in(), tmp_path) as process:
        first = process.decode(BATCH, WEIGHTS)[0]
        second = process.decode(BATCH, OTHERS)[0]
        sparse = process.decode(BATCH, replace(OTHERS, sparse={"W_c": 100.0}))[0]
        dense = process.decode(BATCH, OTHERS)[0]
    assert (first.text(0), second.text(0), sparse.text(0)) == (b"c a", b"a c", b"c a")
    assert second.scores.tobytes() == dense.scores.tobytes()


def test_it_can_be_sent_to_another_process(
    stand_in: Callable[..., MosesDecoder], tmp_path: Path
) -> None:
    made = decoder(stand_in(), tmp_path)
    assert pickle.loads(pickle.dumps(made)) == made


def test_a_decoder_that_fails(stand_in: Callable[..., MosesDecoder], tmp_path: Path) -> None:
    broken = replace(stand_in(), program=tmp_path / "fails")
    broken.program.write_text("#!/bin/sh\necho no model >&2\nexit 4\n")
    broken.program.chmod(0o755)
    with pytest.raises(DecoderError, match=r"exit code 4(?s:.*)no model"):
        decoder(broken, tmp_path).decode(BATCH, WEIGHTS)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("3 ||| a ||| LM0= 1 TM0= 1 ||| 1", "list of sentence 3, but the batch has 3"),
        ("0 ||| a ||| LM0= 1 TM0= 1 ||| 1\n\n1 ||| a ||| XM0= 1 ||| 1", r"nbest(?s:.*)XM0"),
        (
            "1 ||| a ||| LM0= 1 TM0= 1 ||| 1\n0 ||| a ||| LM0= 1 TM0= 1 ||| 1",
            "sentence ids go backwards",
        ),
        ("a ||| a ||| LM0= 1 TM0= 1 ||| 1", "nbest:1: the sentence id"),
        (
            "0 ||| a ||| LM0= 1 TM0= 1 ||| 1\n2 ||| a ||| LM0= 1 TM0= 1 ||| 1",
            "lists of 2 of 3 sentences and 0 translations; it left out sentence 7",
        ),
        ("0 ||| a ||| LM0= 1 TM0= 1 ||| -1.2345", r"nbest is cut off: its last line"),
    ],
)
def test_a_list_that_cannot_be_used(
    output: str, message: str, stand_in: Callable[..., MosesDecoder], tmp_path: Path
) -> None:
    (tmp_path / "list").write_text(output + "\n" * (not output.endswith("5")))
    broken = replace(stand_in(), program=tmp_path / "writes")
    broken.program.write_text(f"#!/bin/sh\ncp {tmp_path}/list {tmp_path}/batch.nbest\n")
    broken.program.chmod(0o755)
    with pytest.raises(DecoderError, match=message):
        decoder(broken, tmp_path).decode(BATCH, WEIGHTS)


def test_a_decoder_that_finds_nothing(
    stand_in: Callable[..., MosesDecoder], tmp_path: Path
) -> None:
    process = decoder(replace(stand_in(), program=tmp_path / "finds"), tmp_path)
    program = process.decoder.program
    program.write_text(f"#!/bin/sh\necho; : > {tmp_path}/batch.nbest\n")
    program.chmod(0o755)
    assert process.decode(BATCH[:1], WEIGHTS) == []
    program.write_text(f"#!/bin/sh\necho words; : > {tmp_path}/batch.nbest\n")
    with pytest.raises(DecoderError, match="lists of 0 of 1 sentences and 1 translations"):
        process.decode(BATCH[:1], WEIGHTS)
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    hanging = replace(process, decoder=replace(process.decoder, timeout=0.2))
    with pytest.raises(DecoderError, match=r"wrote nothing for 0\.2 s"):
        hanging.decode(BATCH[:1], WEIGHTS)
    program.write_text("#!/bin/sh\n")
    with pytest.raises(DecoderError, match="wrote no n-best list"):
        process.decode(BATCH[:1], WEIGHTS)
