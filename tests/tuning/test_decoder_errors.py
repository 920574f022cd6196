"""Decoders that misbehave are reported with command, exit code and last words, and not stored."""

from __future__ import annotations

from typing import Any

import pytest

from formats.errors import FormatError
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import Note
from mosesplug.store import NBestStore
from mosesplug.tuning import tune

Toy = Any
Log = Any


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("die", ["exit code 1", "the beam is empty"]),
        ("short", ["n-best lists of 3 of 12 sentences and 3 translations", "left out sentence 3"]),
        ("gap", ["n-best lists of 11 of 12 sentences and 12 translations", "sentence 3"]),
        ("empty", ["wrote no n-best list"]),
        ("nan", ["cannot be used", "nan"]),
        (
            "order",
            [
                "another order",
                "TranslationModel0*3 WordPenalty0 LM0 Distortion0 instead of",
                "Distortion0 LM0 WordPenalty0 TranslationModel0*3",
            ],
        ),
    ],
)
def test_fault_is_reported_and_nothing_stored(toy: Toy, fault: str, words: list[str]) -> None:
    with pytest.raises(DecoderError) as caught:
        tune(toy.configuration(flags=f"-fault {fault}"))
    text = str(caught.value)
    for word in [*words, f"-fault {fault}", "-weight-overwrite", "run1.decoder.err"]:
        assert word in text
    if fault != "die":
        assert "\nloaded\n" in text
    with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
        assert not store.iterations()


def test_a_run_without_decoding_can_be_replaced(toy: Toy) -> None:
    """The same command again, once the decoder works, needs no word about an earlier run."""
    with pytest.raises(DecoderError):
        tune(toy.configuration(flags="-fault die"))
    tune(toy.configuration(maximum_iterations=1))
    with pytest.raises(UsageError, match="earlier run"):
        tune(toy.configuration(maximum_iterations=1))


def test_a_run_continues_after_the_fault_is_fixed(toy: Toy) -> None:
    whole = tune(toy.configuration("whole", maximum_iterations=2))
    tune(toy.configuration(maximum_iterations=1))
    more = {"maximum_iterations": 2, "existing": "continue"}
    with pytest.raises(DecoderError):
        tune(toy.configuration(flags="-fault short", **more))
    # The run had ended: it continues only because more iterations are requested.
    assert tune(toy.configuration(**more)).weights == whole.weights


def test_model_that_cannot_be_loaded(toy: Toy) -> None:
    with pytest.raises(DecoderError) as caught:
        tune(toy.configuration(flags="-fault no-weights"))
    assert "-show-weights" in str(caught.value)
    assert "cannot load the model" in str(caught.value)
    assert not (toy.directory / "work" / "features.list").exists()


def test_relative_model_paths_are_hinted_at(toy: Toy) -> None:
    (toy.directory / "table.gz").write_text("x")
    config = toy.directory / "moses.ini"
    config.write_text(config.read_text().replace("[feature]", "[feature]\nT path=table"))
    for fault in ("no-table", "no-table-silent"):
        with pytest.raises(DecoderError, match="looks for table there"):
            tune(toy.configuration(flags=f"-fault {fault}"))
    # A decoder that names another cause is believed.
    with pytest.raises(DecoderError) as caught:
        tune(toy.configuration(flags="-fault no-weights"))
    assert "hint" not in str(caught.value)


def test_decoder_with_nothing_to_tune(toy: Toy) -> None:
    (toy.directory / "moses.ini").write_text("[weight]\nUnknownWordPenalty0= 1\n")
    with pytest.raises(DecoderError, match="no weights to tune"):
        tune(toy.configuration())


def test_sentences_with_an_empty_translation(toy: Toy, log: Log) -> None:
    result = tune(toy.configuration(flags="-fault unparsed", maximum_iterations=1), log)
    assert result.iterations[0].sentences == 11
    (note,) = [note for note in log.of(Note) if note.is_warning]
    assert "1 of 12 sentences have no n-best list" in note.text


def test_references_of_another_text(toy: Toy) -> None:
    reference = toy.directory / "reference1"
    reference.write_text(reference.read_text() + "one more\n")
    with pytest.raises(FormatError, match="13 lines"):
        tune(toy.configuration())


def test_announcement_that_cannot_be_read(toy: Toy) -> None:
    config = toy.directory / "moses.ini"
    config.write_text(config.read_text().replace("LM0= 0.5", "LM0= nan"))
    with pytest.raises(DecoderError, match="show-weights cannot be read"):
        tune(toy.configuration())
