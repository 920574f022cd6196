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

__all__ = ["ProcessDecoder", "decode_batch", "ignore_command"]


def ignore_command(command: tuple[str, ...]) -> None:
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
    executing: Callable[[tuple[str, ...]], None] = ignore_command
    beat: Callable[[int], None] | None = None

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """Decode sentences, as ``BatchDecoder.decode``."""

        def make_command(source: Path, nbest: Path) -> tuple[str, ...]:
            sparse = None
            if weights.sparse:
                sparse = self._file("sparse-weights")
                sparse.write_bytes(format_sparse(weights.sparse))
            return self.decoder.nbest(
                self.config,
                source.absolute(),
                run=1,
                nbest_file=nbest.name,
                nbest=self.nbest,
                weights=weights.overwrite(),
                sparse_weights=None if sparse is None else sparse.name,
            )

        return decode_batch(
            sentences,
            weights,
            make_command,
            file=self._file,
            directory=self.directory,
            executing=self.executing,
            beat=self.beat,
            timeout=self.decoder.timeout,
        )

    def close(self) -> None:
        """Do nothing: no program runs between two mini-batches."""

    def _file(self, ending: str) -> Path:
        return self.directory / f"{self.prefix}.{ending}"


def decode_batch(
    sentences: Sequence[tuple[int, bytes]],
    weights: ModelWeights,
    make_command: Callable[[Path, Path], tuple[str, ...]],
    *,
    file: Callable[[str], Path],
    directory: Path,
    executing: Callable[[tuple[str, ...]], None],
    beat: Callable[[int], None] | None,
    timeout: float | None,
    any_layout: bool = False,
) -> list[NBestList]:
    """Decode a mini-batch by a command that reads a file and writes its lists to another.

    Args:
        sentences: their ids, and their texts.
        weights: to decode with.
        make_command: returns the command for the file of the sentences and that of the lists.
        file: returns the path of the decoder's file with an ending.
        directory: the command's current directory.
        executing: receives the command.
        beat: called a few times a second while the command runs.
        timeout: as for ``run_command``.
        any_layout: whether the lists may have another layout than that of Moses.

    Raises:
        DecoderError: a list is missing, cut off, or not one of these sentences and features.
    """
    if not sentences:
        return []
    source, nbest = file("in"), file("nbest")
    source.write_bytes(b"".join(text + b"\n" for _, text in sentences))
    nbest.unlink(missing_ok=True)
    command = make_command(source, nbest)
    executing(command)
    finished = run_command(
        command,
        directory=directory,
        stdout=file("out"),
        stderr=file("err"),
        on_lines=beat,
        timeout=timeout,
        signs=[nbest],
    )
    numbers = [number for number, _ in sentences]
    return _read_batch(nbest, numbers, weights, finished, any_layout=any_layout)


def _read_batch(
    nbest: Path,
    numbers: Sequence[int],
    weights: ModelWeights,
    finished: FinishedProcess,
    *,
    any_layout: bool,
) -> list[NBestList]:
    """Return the lists of a mini-batch that a process wrote; see ``decode_batch``."""
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
