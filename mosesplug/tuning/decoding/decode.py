"""One decoding of the whole input: run the decoder, look at what it wrote, pack the list."""

from __future__ import annotations

import heapq
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.nbest.files import NBestList
from formats.text import atomic_write, open_text, read_lines
from mosesplug.decoders.process import Finished, failure, run
from mosesplug.errors import DecoderError
from mosesplug.features import spelled_groups
from mosesplug.settings.configuration import Configuration
from mosesplug.tuning.events import Decoded, Executing, Note, Watcher
from mosesplug.tuning.resources import Clock
from mosesplug.tuning.workdir.workspace import Workspace

__all__ = ["Lists", "checked_blocks", "decode", "decode_graphs", "finished_list", "skipped"]


@dataclass(frozen=True)
class Lists:
    """One iteration's n-best lists, decoded and packed.

    Attributes:
        path: the list to read; of search graphs, where it is to be written.
        command: the decoder's, empty where decoding was skipped.
        stdout: the decoder's first-best translations.
        stderr: its messages.
        seconds: of decoding.
        graphs: directory of search graphs that the lists are to be taken from, or None.
    """

    path: Path
    command: tuple[str, ...]
    stdout: Path
    stderr: Path
    seconds: float
    graphs: Path | None = None

    def failure(self, problem: str) -> DecoderError:
        """The error for lists that cannot be used."""
        if not self.command:
            return DecoderError(f"{self.path}: {problem}")
        return failure(problem, self.command, self.stderr)


def decode(
    configuration: Configuration,
    workspace: Workspace,
    config: Path,
    iteration: int,
    *,
    n_sentences: int,
    weights: str | None,
    sparse_weights: str | None,
    watch: Watcher,
) -> Lists:
    """Decode the input, and keep the lists as ``runN.bestK.out.gz``.

    Args:
        configuration: of the run.
        workspace: its files.
        config: the ``moses.ini`` to decode with.
        iteration: from 1.
        n_sentences: sentences of the input, to tell progress.
        weights: Moses' ``-weight-overwrite``, or None to keep those of ``config``.
        sparse_weights: name of the file with sparse weights, or None.
        watch: told of the command and of progress.

    Raises:
        DecoderError: the decoder failed, or wrote no list.
    """
    decoding = configuration.decoding
    nbest, samples = workspace.nbest(iteration), workspace.samples(iteration, 0)
    if decoding.lattice_samples:
        samples = workspace.samples(iteration, decoding.lattice_samples)
    for leftover in (nbest, samples, workspace.nbest_packed(iteration)):
        leftover.unlink(missing_ok=True)
    command = decoding.decoder.nbest(
        config,
        configuration.input,
        run=iteration,
        nbest_file=nbest.name,
        nbest=decoding.nbest,
        weights=weights,
        sparse_weights=sparse_weights,
        samples_file=samples.name,
        samples=decoding.lattice_samples,
    )
    watch(Executing(command))
    finished = _run(command, workspace, iteration, n_sentences, watch, decoding.decoder.timeout)
    if not nbest.is_file() or not nbest.stat().st_size:
        raise failure("the decoder wrote no n-best list", command, finished.stderr)
    if not _ends_in_newline(nbest):
        raise failure(
            f"the decoder's n-best list {nbest} is cut off: its last line has no end (a full disk,"
            " or a decoder that died and did not say so)",
            command,
            finished.stderr,
        )
    if decoding.lattice_samples:
        _merge(nbest, samples, finished)
        _pack(samples)
    packed = finished_list(configuration, workspace, iteration, watch)
    return Lists(packed, command, finished.stdout, finished.stderr, finished.seconds)


def decode_graphs(
    configuration: Configuration,
    workspace: Workspace,
    config: Path,
    iteration: int,
    *,
    n_sentences: int,
    weights: str | None,
    sparse_weights: str | None,
    watch: Watcher,
) -> Lists:
    """Decode the input to search graphs, in the place of those of the iteration before.

    Args:
        configuration, workspace, config, iteration, n_sentences, weights, sparse_weights, watch: as
            for ``decode``.

    Raises:
        DecoderError: the decoder failed.
    """
    workspace.nbest_packed(iteration).unlink(missing_ok=True)
    workspace.remove_graphs()
    workspace.graphs.mkdir(exist_ok=True)
    decoder = configuration.decoding.decoder
    command = decoder.graphs(
        config,
        configuration.input,
        directory=workspace.graphs.name,
        weights=weights,
        sparse_weights=sparse_weights,
    )
    watch(Executing(command))
    finished = _run(command, workspace, iteration, n_sentences, watch, decoder.timeout)
    return Lists(
        workspace.nbest_packed(iteration),
        command,
        finished.stdout,
        finished.stderr,
        finished.seconds,
        workspace.graphs,
    )


def finished_list(
    configuration: Configuration, workspace: Workspace, iteration: int, watch: Watcher
) -> Path:
    """The list that was written, rewritten if it is to be, and compressed.

    Raises:
        DecoderError: what rewrites it failed.
    """
    nbest = workspace.nbest(iteration)
    if configuration.decoding.transform is not None:
        _transform(nbest, configuration.decoding.transform, workspace, iteration, watch)
    return _pack(nbest)


def skipped(workspace: Workspace, iteration: int, *, graphs: bool = False) -> Lists:
    """The lists, or search graphs, of a decoder that is not to run again.

    Raises:
        DecoderError: they are not there.
    """
    path = workspace.nbest_packed(iteration)
    there = workspace.graphs if graphs else path
    if not there.exists():
        raise DecoderError(
            f"the decoder was to be skipped, but there is no {there}: decode, or put the"
            f" {'search graphs' if graphs else 'list'} there"
        )
    out, err = workspace.run(iteration, "out"), workspace.run(iteration, "decoder.err")
    return Lists(path, (), out, err, 0.0, workspace.graphs if graphs else None)


def _run(
    command: tuple[str, ...],
    workspace: Workspace,
    iteration: int,
    n_sentences: int,
    watch: Watcher,
    timeout: float | None,
) -> Finished:
    clock = Clock()

    def progress(lines: int) -> None:
        watch(Decoded(iteration, min(lines, n_sentences), n_sentences, clock.seconds()))

    return run(
        command,
        directory=workspace.directory,
        stdout=workspace.run(iteration, "out"),
        stderr=workspace.run(iteration, "decoder.err"),
        on_lines=progress,
        timeout=timeout,
        signs=[workspace.nbest(iteration), workspace.graphs],
    )


def _ends_in_newline(path: Path) -> bool:
    """Whether the last line of a file that is not empty was written to its end."""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def _pack(path: Path) -> Path:
    """Compress a file in place; the same bytes give the same archive."""
    packed = path.with_name(path.name + ".gz")
    with path.open("rb") as source, atomic_write(packed, compress="gz") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    path.unlink()
    return packed


def _merge(nbest: Path, samples: Path, finished: Finished) -> None:
    """Put the samples of each sentence behind its n-best list."""
    if not samples.is_file():
        raise failure("the decoder wrote no lattice samples", finished.command, finished.stderr)
    with (
        atomic_write(nbest) as target,
        open_text(nbest) as first,
        open_text(samples) as second,
    ):
        try:
            target.writelines(heapq.merge(_whole_lines(first), _whole_lines(second), key=_sentence))
        except ValueError as error:
            problem = f"the decoder wrote a list without sentence numbers ({error})"
            raise failure(problem, finished.command, finished.stderr) from error


def _whole_lines(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Lines that all end in a newline, empty ones left out."""
    return (line if line.endswith(b"\n") else line + b"\n" for line in lines if line.strip())


def _sentence(line: bytes) -> int:
    return int(line.partition(b"|||")[0])


def _transform(
    nbest: Path, transform: str, workspace: Workspace, iteration: int, watch: Watcher
) -> None:
    """Rewrite a list by a shell command, or join subwords."""
    if transform == "bpe":
        with open_text(nbest) as source, atomic_write(nbest) as target:
            target.writelines(line.replace(b"@@ ", b"") for line in source)
        return
    # The user's command line may be a pipeline, so it is the shell's to read.
    command = ("/bin/sh", "-c", transform)
    watch(Executing((*command, "<", nbest.name)))
    changed = nbest.with_name(nbest.name + ".transformed")
    run(
        command,
        directory=workspace.directory,
        stdin=nbest,
        stdout=changed,
        stderr=workspace.run(iteration, "transform.err"),
        what=f"transformation {shlex.quote(transform)}",
    )
    changed.replace(nbest)


_NAMED = 5


def checked_blocks(
    blocks: Iterable[NBestList],
    lists: Lists,
    *,
    groups: tuple[tuple[str, int], ...],
    n_sentences: int,
    watch: Watcher,
) -> Iterator[NBestList]:
    """The same blocks, once the decoder is known to have done what was asked.

    A sentence may lack a list only where the decoder translated it by nothing, as a chart decoder
    does that finds no parse.

    Args:
        blocks: the list as it is read.
        lists: where it came from, for messages.
        groups: dense groups that the decoder announced, in order.
        n_sentences: sentences of the input.
        watch: told of sentences without a list.

    Raises:
        DecoderError: other features or another order, too few sentences, no hypotheses.
    """
    seen = np.zeros(n_sentences, dtype=np.bool_)
    for block in blocks:
        if block.groups != groups:
            raise lists.failure(
                "the decoder wrote other features into its n-best list than it announced, or in"
                f" another order: {spelled_groups(block.groups)} instead of"
                f" {spelled_groups(groups)}"
            )
        if len(block) and block.sentence_ids[-1] >= n_sentences:
            raise lists.failure(
                f"the n-best list has sentence {block.sentence_ids[-1]}, but the input has only"
                f" {n_sentences}, counted from 0"
            )
        seen[block.sentence_ids] = True
        yield block
    missing = np.flatnonzero(~seen)
    if len(missing) == n_sentences:
        raise lists.failure("the n-best list holds no hypotheses")
    if len(missing):
        _account_for(missing, lists, n_sentences, watch)


def _account_for(
    missing: NDArray[np.int64], lists: Lists, n_sentences: int, watch: Watcher
) -> None:
    """Let sentences without a list pass if their translations are empty, else refuse."""
    named = ", ".join(map(str, missing[:_NAMED])) + (", ..." if len(missing) > _NAMED else "")
    translations = read_lines(lists.stdout) if lists.stdout.is_file() else []
    complete = len(translations) == n_sentences
    if lists.command and not (complete and not any(translations[i].strip() for i in missing)):
        raise lists.failure(
            f"the decoder wrote n-best lists of {n_sentences - len(missing)} of {n_sentences}"
            f" sentences and {len(translations)} translations; it left out sentence {named}"
        )
    watch(
        Note(
            f"{len(missing)} of {n_sentences} sentences have no n-best list and do not count:"
            f" {named} (counted from 0)",
            warning=True,
        )
    )
