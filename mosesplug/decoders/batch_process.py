"""Run the decoder for each mini-batch: slow with a large model, but exact with any decoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from formats.nbest.files import NBestList
from formats.text import read_bytes, read_lines
from formats.weights.files import format_sparse
from mosesplug.decoders.batch import BatchDecoder, ModelWeights, parse_lists
from mosesplug.decoders.moses import MosesDecoder
from mosesplug.decoders.process import FinishedProcess, make_error, run_command
from mosesplug.errors import DecoderError

__all__ = ["ProcessDecoder", "read_batch"]


def _ignore(command: tuple[str, ...]) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class ProcessDecoder(BatchDecoder):
    """A ``BatchDecoder`` that runs the program on a file with the sentences.

    Attributes:
        decoder: how to call the program.
        config: the ``moses.ini`` to decode with.
        directory: the program's current directory, for its files ``<prefix>.*``.
        nbest: length of the n-best lists.
        prefix: distinguishes the files of several decoders in one directory.
        executing: receives each command.
        beat: called a few times a second while the program runs. An exception that it raises ends
            the program, and the mini-batch.
    """

    decoder: MosesDecoder
    config: Path
    directory: Path
    nbest: int
    prefix: str = "batch"
    executing: Callable[[tuple[str, ...]], None] = _ignore
    beat: Callable[[int], None] | None = None

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """Decode sentences, as ``BatchDecoder.decode``."""
        if not sentences:
            return []
        source, nbest = self._file("in"), self._file("nbest")
        source.write_bytes(b"".join(text + b"\n" for _, text in sentences))
        nbest.unlink(missing_ok=True)
        sparse = None
        if weights.sparse:
            sparse = self._file("sparse-weights")
            sparse.write_bytes(format_sparse(weights.sparse))
        command = self.decoder.nbest(
            self.config,
            source.absolute(),
            run=1,
            nbest_file=nbest.name,
            nbest=self.nbest,
            weights=weights.overwrite(),
            sparse_weights=None if sparse is None else sparse.name,
        )
        self.executing(command)
        finished = run_command(
            command,
            directory=self.directory,
            stdout=self._file("out"),
            stderr=self._file("err"),
            on_lines=self.beat,
            timeout=self.decoder.timeout,
            signs=[nbest],
        )
        return read_batch(nbest, [number for number, _ in sentences], weights, finished)

    def close(self) -> None:
        """Do nothing: no program runs between two mini-batches."""

    def _file(self, ending: str) -> Path:
        return self.directory / f"{self.prefix}.{ending}"


def read_batch(
    nbest: Path,
    numbers: Sequence[int],
    weights: ModelWeights,
    finished: FinishedProcess,
    *,
    any_layout: bool = False,
) -> list[NBestList]:
    """Return the lists of a mini-batch that a process wrote.

    Args:
        nbest: file of the lists.
        numbers: sentence ids of the mini-batch, in the order of its sentences.
        weights: that it was decoded with.
        finished: the process.
        any_layout: whether the lists may have another layout than that of Moses.

    Raises:
        DecoderError: a list is missing, cut off, or not one of these sentences and features.
    """
    if not nbest.is_file():
        raise make_error("the decoder wrote no n-best list", finished.command, finished.stderr)
    try:
        text = read_bytes(nbest)
        if text and not text.endswith(b"\n"):
            raise DecoderError(f"{nbest} is cut off: its last line has no end")
        lists = parse_lists(text, numbers, weights.columns, str(nbest), any_layout=any_layout)
        _check_missing_lists(numbers, lists, finished.stdout)
    except DecoderError as error:
        raise make_error(str(error), finished.command, finished.stderr) from error
    return lists


def _check_missing_lists(numbers: Sequence[int], lists: Sequence[NBestList], stdout: Path) -> None:
    """Check that sentences without a list have an empty translation, as without a parse."""
    listed = {int(found.sentence_ids[0]) for found in lists}
    missing = [place for place, number in enumerate(numbers) if number not in listed]
    if not missing:
        return
    translations = read_lines(stdout)
    if len(translations) == len(numbers) and not any(translations[i].strip() for i in missing):
        return
    raise DecoderError(
        f"the decoder wrote n-best lists of {len(lists)} of {len(numbers)} sentences and"
        f" {len(translations)} translations; it left out sentence {numbers[missing[0]]}"
    )
