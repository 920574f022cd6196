"""Rewrite, merge, compress and check the n-best lists of a decoding."""

from __future__ import annotations

import heapq
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.nbest.files import read_nbest_blocks
from formats.text import atomic_write, open_text, read_lines
from formats.weights.files import ShowWeights
from mosesplug.decoders.layout import arrange_groups, choose_layout
from mosesplug.decoders.lists.following import ARCHIVES, ListFollower, follow_list
from mosesplug.decoders.processes.run import FinishedProcess, make_error, run_command
from mosesplug.decoders.protocol import DecodedInput, DecodingTask
from mosesplug.decoders.run_files import RunFiles
from mosesplug.errors import DataError, DecoderError
from mosesplug.events import Note, Watcher
from mosesplug.features import FeatureSpace, spelled_groups

_TAIL = 1 << 16
"""Bytes at the end of a list that are searched for its last line."""
_NAMED = 5
"""Missing sentences that a message names."""


def finish_list(task: DecodingTask, iteration: int) -> Path:
    """Rewrite the n-best list if the settings ask for it, and compress it.

    Raises:
        DecoderError: the command that rewrites it failed.
    """
    if task.transform is not None:
        _transform(task, task.transform, iteration)
    return pack(task.files.nbest(iteration))


def keep_list(
    task: DecodingTask, iteration: int, follower: ListFollower | None
) -> tuple[Path, Iterator[NBestList] | None]:
    """Compress a list as ``finish_list``, unless that was done while it was written.

    Returns:
        The archive; its lists, if they are parsed already.

    Raises:
        DecoderError: as ``finish_list``.
    """
    if follower is None or not follower.finish():
        return finish_list(task, iteration), None
    task.files.nbest(iteration).unlink()
    return task.files.packed_nbest(iteration), follower.take_lists()


@contextmanager
def follow_decoder(
    task: DecodingTask, iteration: int, features: ShowWeights
) -> Iterator[ListFollower | None]:
    """Follow the list that a decoder writes; None if it is rewritten before storing."""
    if task.transform is not None or task.samples or task.references is not None:
        yield None
        return
    groups = FeatureSpace.of_names(features.names).groups
    path, packed = task.files.nbest(iteration), task.files.packed_nbest(iteration)
    with follow_list(path, packed, groups, task.parsed) as follower:
        yield follower


def check_written(nbest: Path, finished: FinishedProcess) -> None:
    """Check that a decoder wrote a whole n-best list.

    Raises:
        DecoderError: it is missing, empty or cut off.
    """
    if not nbest.is_file() or not nbest.stat().st_size:
        raise make_error("the decoder wrote no n-best list", finished.command, finished.stderr)
    with nbest.open("rb") as file:
        is_archive = file.read(2) in ARCHIVES
        file.seek(-1, os.SEEK_END)
        if is_archive or file.read() == b"\n":
            return
    raise make_error(
        f"the decoder's n-best list {nbest} is cut off: its last line has no end (a full disk, or"
        " a decoder that died and did not say so)",
        finished.command,
        finished.stderr,
    )


def count_listed(nbest: Path) -> int:
    """Return the number of sentences up to the last whole line of a growing list."""
    try:
        with nbest.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            lines = file.read().split(b"\n")[:-1]
            return int(lines[-1].partition(b"|||")[0]) + 1 if lines else 0
    except (OSError, ValueError):
        return 0


def read_decoded(path: Path, groups: tuple[tuple[str, int], ...]) -> Iterator[NBestList]:
    """Yield the blocks of a decoder's n-best list.

    The list may have any format that can hold these features.

    Args:
        groups: the dense features. A list without labels has their values in this order; one that
            names every value, as Joshua and cdec do, or that has underscores in the names of dense
            features, may have them in any order.

    Raises:
        FormatError: the list cannot be read.
    """
    with open_text(path) as file:
        line = next((line for line in file if line.strip()), b"")
    names, dense = choose_layout(line, groups)
    return read_nbest_blocks(path, names=names, dense=dense)


def reuse_decoding(files: RunFiles, iteration: int, *, graphs: bool = False) -> DecodedInput:
    """Return the n-best list, or search graphs, of an earlier decoding.

    Raises:
        DecoderError: they are missing.
    """
    path = files.packed_nbest(iteration)
    source = files.graphs if graphs else path
    if not source.exists():
        raise DecoderError(
            f"the decoder was to be skipped, but there is no {source}: decode, or put the"
            f" {'search graphs' if graphs else 'list'} there"
        )
    out, err = files.run(iteration, "out"), files.run(iteration, "decoder.err")
    return DecodedInput(path, (), out, err, 0.0, files.graphs if graphs else None)


def pack(path: Path) -> Path:
    """Compress a file in place; equal bytes give equal archives."""
    packed = path.with_name(path.name + ".gz")
    with open_text(path) as source, atomic_write(packed, compress="gz") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    path.unlink()
    return packed


def merge_samples(nbest: Path, samples: Path, finished: FinishedProcess) -> None:
    """Append the samples of each sentence to its n-best list."""
    if not samples.is_file():
        raise make_error("the decoder wrote no lattice samples", finished.command, finished.stderr)
    with (
        atomic_write(nbest) as target,
        open_text(nbest) as first,
        open_text(samples) as second,
    ):
        try:
            # The merge is stable: a sentence's samples come after its list.
            target.writelines(heapq.merge(_whole_lines(first), _whole_lines(second), key=_sentence))
        except ValueError as error:
            problem = f"the decoder wrote a list without sentence numbers ({error})"
            raise make_error(problem, finished.command, finished.stderr) from error


def _whole_lines(lines: Iterator[bytes]) -> Iterator[bytes]:
    return (line if line.endswith(b"\n") else line + b"\n" for line in lines if line.strip())


def _sentence(line: bytes) -> int:
    return int(line.partition(b"|||")[0])


def _transform(task: DecodingTask, transform: str, iteration: int) -> None:
    """Rewrite an n-best list by a shell command, or join subwords."""
    nbest = task.files.nbest(iteration)
    if transform == "bpe":
        with open_text(nbest) as source, atomic_write(nbest) as target:
            target.writelines(line.replace(b"@@ ", b"") for line in source)
        return
    # The command may be a pipeline, which needs a shell.
    command = ("/bin/sh", "-c", transform)
    task.report_command((*command, "<", nbest.name))
    changed = nbest.with_name(nbest.name + ".transformed")
    run_command(
        command,
        directory=task.files.directory,
        stdin=nbest,
        stdout=changed,
        stderr=task.files.run(iteration, "transform.err"),
        what=f"transformation {shlex.quote(transform)}",
    )
    changed.replace(nbest)


def check_blocks(
    blocks: Iterable[NBestList],
    lists: DecodedInput,
    *,
    groups: tuple[tuple[str, int], ...],
    n_sentences: int,
    watch: Watcher,
) -> Iterator[NBestList]:
    """Yield the same blocks, and check that the decoder processed all sentences.

    A sentence may lack a list only if its translation is empty, as a chart decoder
    does that finds no parse.

    Args:
        blocks: the list as it is read.
        lists: the source of the blocks, for messages.
        groups: dense groups that the decoder announced, in order.
        watch: called with a note about sentences without a list.

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
        _check_missing_lists(missing, lists, n_sentences, watch)


def _check_missing_lists(
    missing: NDArray[np.int64], lists: DecodedInput, n_sentences: int, watch: Watcher
) -> None:
    """Let sentences without a list pass if their translations are empty, else refuse."""
    named = _name_sentences(missing)
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
            is_warning=True,
        )
    )


def _name_sentences(missing: NDArray[np.int64]) -> str:
    return ", ".join(map(str, missing[:_NAMED])) + (", ..." if len(missing) > _NAMED else "")


def check_answer(
    blocks: Iterable[NBestList],
    groups: tuple[tuple[str, int], ...],
    n_sentences: int,
    what: str,
    wanted: NDArray[np.int64] | None = None,
) -> Iterator[NBestList]:
    """Yield blocks with the features in order; require lists of all sentences.

    Args:
        blocks: the lists, sentences in ascending order.
        groups: the dense features of the run; the lists may have them in another order.
        n_sentences: sentences of the references.
        what: the lists, for messages.
        wanted: the sentences of a mini-batch, which must be all that the lists have; None for all.

    Raises:
        DataError: they have other features, a sentence that there is not, or lack sentences.
    """
    seen = np.zeros(n_sentences, dtype=np.bool_)
    due = np.arange(n_sentences) if wanted is None else np.sort(wanted)
    for block in (arrange_groups(block, groups) for block in blocks):
        if block.groups != groups:
            raise DataError(
                f"{what}: the dense features are {spelled_groups(block.groups)}, but the run tunes"
                f" {spelled_groups(groups)}. Nothing is stored"
            )
        ids = block.sentence_ids
        if len(ids) and (ids[0] < 0 or ids[-1] >= n_sentences):
            wrong = ids[0] if ids[0] < 0 else ids[-1]
            raise DataError(
                f"{what}: there is no sentence {wrong}: the references have {n_sentences},"
                " counted from 0. Nothing is stored"
            )
        if len(others := np.setdiff1d(ids, due)):
            raise DataError(
                f"{what}: sentence {others[0]} (counted from 0) is not in the mini-batch, which has"
                f" {_name_sentences(due)}. Nothing is stored"
            )
        seen[ids] = True
        yield block
    missing = due[~seen[due]]
    if len(missing):
        which = "all sentences" if wanted is None else "all sentences of the mini-batch"
        raise DataError(
            f"{what}: {len(missing)} of {len(due)} sentences have no hypotheses:"
            f" {_name_sentences(missing)} (counted from 0). Tell the lists of {which}."
            " Nothing is stored"
        )
