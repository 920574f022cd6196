"""Command lines, against those that ``mert-moses.pl`` itself runs (recorded by hand)."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.moses import parse_flags
from mosesplug.decoders.wrappers import PostEditing, Queue
from mosesplug.errors import UsageError

MOSES = Path("/opt/moses/bin/moses")
CONFIG = Path("/data/moses.ini")
INPUT = Path("/data/input")


def nbest(decoder: MosesDecoder, **more: object) -> tuple[str, ...]:
    given: dict[str, object] = {
        "run": 2,
        "nbest_file": "run2.best100.out",
        "nbest": 100,
        "weights": "LM0= 0.5 x",
    }
    return decoder.nbest(CONFIG, INPUT, **(given | more))  # type: ignore[arg-type]


def test_plain_decoder() -> None:
    decoder = MosesDecoder(MOSES, ("-threads", "2"), input_type=0)
    assert decoder.show_weights(CONFIG) == (
        *(str(MOSES), "-threads", "2", "-config", str(CONFIG), "-inputtype", "0"),
        "-show-weights",
    )
    assert nbest(decoder, sparse_weights="run2.sparse-weights") == (
        *(str(MOSES), "-threads", "2", "-config", str(CONFIG), "-inputtype", "0"),
        *("-weight-overwrite", "LM0= 0.5 x", "-weight-file", "run2.sparse-weights"),
        *("-n-best-list", "run2.best100.out", "100", "distinct", "-input-file", str(INPUT)),
    )


def test_weights_of_the_configuration_are_not_changed() -> None:
    assert "-weight-overwrite" not in nbest(MosesDecoder(MOSES), weights=None)


def test_lattice_samples() -> None:
    command = nbest(MosesDecoder(MOSES), samples_file="run2.lsamp7.out", samples=7)
    place = command.index("-lattice-samples")
    assert command[place : place + 4] == (
        "-lattice-samples",
        "run2.lsamp7.out",
        "7",
        "-n-best-list",
    )


def test_wrappers() -> None:
    editing = PostEditing(Path("/s/sim.py"), Path("/d/ref"), Path("/d/symal"), Path("/w"))
    decoder = MosesDecoder(MOSES, several=Path("/s/multi_moses.py"), post_editing=editing)
    command = nbest(decoder)
    assert command[:3] == ("/s/sim.py", "/s/multi_moses.py", str(MOSES))
    assert command[-6:] == ("-ref", "/d/ref", "-symal", "/d/symal", "-tmp", "/w")
    assert decoder.show_weights(CONFIG)[:2] == ("/s/multi_moses.py", str(MOSES))


def test_queue() -> None:
    queue = Queue(Path("/s/moses-parallel.pl"), 4, "-l mem=2G", old_sge=True, cache="/tmp/m")
    command = nbest(MosesDecoder(MOSES, ("-v", "0"), 0, queue))
    assert command == (
        *("/s/moses-parallel.pl", "-old-sge", "-config", str(CONFIG), "-inputtype", "0"),
        *("-cache-model", "/tmp/m", "-qsub-prefix", "mert2", "-queue-parameters", "-l mem=2G"),
        *("-decoder-parameters", "-v 0 -weight-overwrite 'LM0= 0.5 x'"),
        *("-n-best-list", "run2.best100.out 100 distinct", "-input-file", str(INPUT)),
        *("-jobs", "4", "-decoder", str(MOSES)),
    )


def test_submission() -> None:
    queue = Queue(Path("/s/moses-parallel.pl"), 4)
    submitted = queue.make_submission(
        Path("/s/qsub-wrapper.pl"), ["a", "b c"], Path("/w/out"), Path("/w/err")
    )
    assert submitted == (
        *("/s/qsub-wrapper.pl", "-command=a 'b c'", "-queue-parameter=-hard"),
        *("-stdout=/w/out", "-stderr=/w/err"),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("  -threads 2  -v 0 ", ("-threads", "2", "-v", "0")),
        ("--beam -3 -x 'a b'", ("--beam", "-3", "-x", "a b")),
    ],
)
def test_flags(text: str, words: tuple[str, ...]) -> None:
    assert parse_flags(text) == words


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-v 'x", "No closing quotation"),
        ("2 -threads", "before any flag"),
        ("-3", "before any flag"),
        ("-v 0 -config other.ini", "configuration"),
        ("--lmodel-file x", "configuration"),
        ("-v 1 -weight-overwrite 'LM0= 1'", "overrule the weights"),
        ("-f x", "configuration"),
        ("-n-best-list x 100 distinct", r"hold -n-best-list, which .* with --nbest"),
        ("-v 0 --n-best-list x 100", r"hold --n-best-list, which .* with --nbest"),
        ("-i input", r"hold -i, which .* as INPUT"),
        ("-input-file input", r"hold -input-file, which .* as INPUT"),
        ("-lattice-samples x 5", r"hold -lattice-samples, which .* with --lattice-samples"),
        ("--server", "--online-decoder server"),
        ("-show-weights", "leave it out"),
    ],
)
def test_rejected_flags(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_flags(text)
