"""A decoder run for each batch: slow where the model is large, right with any decoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from formats.nbest import NBestList
from formats.text import read_lines
from formats.weights import format_sparse
from mosesplug.decoders.batch import ModelWeights, parse_list
from mosesplug.decoders.moses import Decoder
from mosesplug.decoders.process import Finished, failure, run
from mosesplug.errors import DecoderError

__all__ = ["ProcessDecoder"]


@dataclass(frozen=True)
class ProcessDecoder:
    """A ``BatchDecoder`` that runs the ordinary decoder on a file with the batch's sentences.

    Attributes:
        decoder: and how to call it.
        config: the ``moses.ini`` to decode with.
        directory: the decoder's current directory, where its files ``<prefix>.*`` go.
        nbest: length of the lists.
        prefix: tells the files of several decoders in one directory apart.
    """

    decoder: Decoder
    config: Path
    directory: Path
    nbest: int
    prefix: str = "batch"

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """As ``BatchDecoder.decode`` says."""
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
        finished = run(
            command,
            directory=self.directory,
            stdout=self._file("out"),
            stderr=self._file("err"),
        )
        if not nbest.is_file() or not nbest.stat().st_size:
            raise failure("the decoder wrote no n-best list", command, finished.stderr)
        return [
            replace(block, sentence_ids=np.full(len(block), sentences[row][0], dtype=np.int64))
            for row, block in self._lists(nbest, len(sentences), weights, finished)
        ]

    def close(self) -> None:
        """Nothing is running between two batches."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _file(self, ending: str) -> Path:
        return self.directory / f"{self.prefix}.{ending}"

    def _lists(
        self, nbest: Path, n_sentences: int, weights: ModelWeights, finished: Finished
    ) -> Iterator[tuple[int, NBestList]]:
        """Each sentence's place in the batch, and its list."""
        last = -1
        numbered = ((n, line) for n, line in enumerate(read_lines(nbest), start=1) if line.strip())
        for _, lines in groupby(numbered, lambda line: line[1].partition(b"|||")[0]):
            (first, line), *others = lines
            text = b"".join(text + b"\n" for text in (line, *(other for _, other in others)))
            try:
                block = parse_list(text, weights.columns, str(nbest), first)
            except DecoderError as error:
                raise failure(str(error), finished.command, finished.stderr) from error
            row = int(block.sentence_ids[0])
            if not last < row < n_sentences:
                problem = f"the decoder gave a list of sentence {row} of {n_sentences}"
                raise failure(problem, finished.command, finished.stderr)
            last = row
            yield row, block
