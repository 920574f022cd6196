"""Read n-best lists of any format into blocks, and change these in steps.

Everything that reads lists goes through ``read_list_blocks``: parse, then each step of
``make_steps`` in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import fspath

import numpy as np

from formats.nbest.block import NBestList
from formats.nbest.files import frequent_features
from formats.nbest.list_format import ListOptions, SentenceIds, read_first_lines
from formats.nbest.registry import AUTO, find_format, open_blocks, read_whole
from formats.text import StrPath
from mosesplug.learning.lists.deriving import DeriveFeatures
from mosesplug.learning.lists.steps import (
    AddFeatures,
    ComputeTemplates,
    DropFeatures,
    ListStep,
    RenameFeatures,
    ScoreStep,
    original_names,
)
from mosesplug.learning.lists.transforming import Transform
from mosesplug.settings.lists import ListSettings
from mosesplug.settings.programs import check_transform


def make_steps(
    settings: ListSettings, ids: SentenceIds, *, is_held_out: bool = False
) -> list[ListStep]:
    """Return the steps that settings ask for, in the order in which blocks pass them.

    Lists of a held-out set may lack features that settings name.
    """
    steps: list[ListStep] = []
    if settings.templates is not None and settings.source is not None:
        steps.append(ComputeTemplates(settings.templates.templates, settings.source, ids))
    steps += _make_name_steps(settings, is_strict=not is_held_out)
    if added := settings.add_feature:
        steps.append(AddFeatures(added, ids))
    if derived := settings.derive:
        steps.append(DeriveFeatures(derived))
    if sources := settings.scores:
        steps.append(ScoreStep(sources, ids, "heldout-scores" if is_held_out else "scores"))
    # The last, since files of values may repeat the texts of the lists.
    if (command := check_transform(settings.transform)) is not None:
        steps.append(Transform(command))
    return steps


def _make_name_steps(settings: ListSettings, *, is_strict: bool) -> list[ListStep]:
    steps: list[ListStep] = []
    if settings.drop_feature:
        steps.append(DropFeatures(settings.drop_feature, is_strict=is_strict))
    if settings.rename:
        steps.append(RenameFeatures(settings.rename, is_strict=is_strict))
    return steps


def make_list_options(settings: ListSettings, dense: Sequence[str] | None = None) -> ListOptions:
    """Return the options of the reader.

    ``dense`` are the dense features of lists that name every value, after renaming; those that
    steps add do not count. None: those of the settings, if they name some.
    """
    dense = settings.dense if dense is None else dense
    if dense is not None:
        # Lists may have features that weights record.
        own = tuple(feature for feature in settings.derive if not feature.is_recorded)
        made = replace(settings, derive=own).changes
        dense = [name for name in dense if not made.makes(name)]
    return ListOptions(
        names=settings.names,
        dense=None if dense is None else original_names(dense, settings.rename),
        columns=settings.columns,
        word_scores=settings.word_scores,
    )


def read_list_blocks(
    files: Sequence[StrPath | NBestList],
    settings: ListSettings,
    *,
    dense: Sequence[str] | None = None,
    ids: SentenceIds | None = None,
    steps: Sequence[ListStep] | None = None,
) -> Iterator[Iterator[NBestList]]:
    """Yield the blocks of each file.

    Read those of one file before you ask for the next.

    Args:
        files: n-best lists: files, or lists that have been read, which are one block each.
        dense: as for ``make_list_options``.
        ids: numbers sentence ids that are texts, in all files alike.
        steps: what blocks pass; None: the steps of the settings.
    """
    options = make_list_options(settings, dense)
    ids = SentenceIds() if ids is None else ids
    steps = make_steps(settings, ids) if steps is None else steps
    for file in files:
        blocks: Iterator[NBestList] = (
            iter([file])
            if isinstance(file, NBestList)
            else open_blocks(file, settings.format, options, ids)
        )
        yield _apply_steps(blocks, steps)
    for step in steps:
        step.finish()


def read_lists_ahead(
    lists: Iterator[Iterator[NBestList]], most_bytes: int
) -> Iterator[Iterator[NBestList]]:
    """Yield the same blocks, but read the beginning of later files earlier.

    Before the first file ends, ``most_bytes`` bytes of text of later ones are read. So errors in
    later files come before the work that begins when the first file is read.
    """
    ahead = deque[tuple[deque[NBestList], Iterator[NBestList]]]()

    def read_first(blocks: Iterator[NBestList]) -> Iterator[NBestList]:
        yield from blocks
        n_bytes = 0
        for upcoming in lists:
            held = deque[NBestList]()
            ahead.append((held, upcoming))
            for block in upcoming:
                held.append(block)
                n_bytes += len(block.buffer)
                if n_bytes >= most_bytes:
                    return

    def read_held(held: deque[NBestList], rest: Iterator[NBestList]) -> Iterator[NBestList]:
        while held:
            yield held.popleft()
        yield from rest

    if (first := next(lists, None)) is not None:
        yield read_first(first)
    while ahead:
        yield read_held(*ahead.popleft())
    yield from lists


def read_file_blocks(
    file: StrPath | NBestList,
    settings: ListSettings,
    *,
    dense: Sequence[str] | None = None,
    ids: SentenceIds | None = None,
) -> Iterator[NBestList]:
    """Yield the blocks of one list; arguments and errors as for ``read_list_blocks``."""
    for blocks in read_list_blocks([file], settings, dense=dense, ids=ids):
        yield from blocks


def read_list(
    file: StrPath,
    settings: ListSettings,
    *,
    dense: Sequence[str] | None = None,
    ids: SentenceIds | None = None,
    threads: int = 2,
) -> NBestList:
    """Read one list as a whole; see ``read_list_blocks``."""
    ids = SentenceIds() if ids is None else ids
    options = make_list_options(settings, dense)
    block = read_whole(file, settings.format, options, ids, threads=threads)
    [block] = read_file_blocks(block, settings, ids=ids)
    return block


def _apply_steps(blocks: Iterator[NBestList], steps: Sequence[ListStep]) -> Iterator[NBestList]:
    """Yield the blocks of a file after all steps."""
    for step in steps:
        blocks = step.stream(blocks)
    return blocks


def describe_formats(files: Iterable[StrPath | NBestList], settings: ListSettings) -> Iterator[str]:
    """Yield which formats other than Moses' were found, once for each format."""
    known = {"moses"}
    for file in files:
        if settings.format != AUTO or isinstance(file, NBestList):
            continue
        list_format = find_format(file, AUTO, settings.columns)
        if list_format.name not in known:
            known.add(list_format.name)
            how = list_format.summary
            if list_format.explain is not None and (lines := read_first_lines(file)):
                how = list_format.explain(lines, ListOptions(columns=settings.columns)) or how
            yield f"{fspath(file)}: format {list_format.name} ({how})"


def names_values(file: StrPath | NBestList, settings: ListSettings) -> bool:
    """Return whether the format of a list leaves open which features are dense."""
    if isinstance(file, NBestList):
        return False
    return find_format(file, settings.format, settings.columns).names_values


@dataclass(frozen=True)
class ListScan:
    """What lists hold.

    Attributes:
        ids: the sentence ids that are texts, by their numbers.
        sentences: the numbers of the sentences that have hypotheses, ascending.
        counts: number of hypotheses that have each feature, after renaming.
    """

    ids: tuple[str, ...]
    sentences: tuple[int, ...]
    counts: dict[str, int]
    hypotheses: int


def scan_lists(
    files: Sequence[StrPath], settings: ListSettings, ids: SentenceIds | None = None
) -> ListScan:
    """Read lists once and return what they hold.

    Features of lists without names are not counted. ``ids`` are known ids; those of the lists are
    added.
    """
    ids = SentenceIds() if ids is None else ids
    sentences, counts, hypotheses = set[int](), dict[str, int](), 0
    steps = _make_name_steps(settings, is_strict=True)
    options = make_list_options(settings)
    for file in files:
        for block in _apply_steps(open_blocks(file, settings.format, options, ids), steps):
            hypotheses += len(block)
            sentences.update(np.unique(block.sentence_ids).tolist())
            totals = np.bincount(block.sparse_indices, minlength=len(block.sparse_names))
            for name, count in zip(block.sparse_names, totals.tolist(), strict=True):
                counts[name] = counts.get(name, 0) + count
    return ListScan(ids.names, tuple(sorted(sentences)), counts, hypotheses)


def find_dense_features(
    files: Sequence[StrPath | NBestList], settings: ListSettings
) -> tuple[str, ...] | None:
    """Return the dense features of lists; None for lists whose format tells them.

    Lists that have been read have their dense features. If settings do not name those of files,
    the files are counted.
    """
    if settings.dense is not None:
        return settings.dense
    paths = [file for file in files if not isinstance(file, NBestList)]
    if not paths or not names_values(paths[0], settings):
        return None
    scan = scan_lists(paths, settings)
    return frequent_features(scan.counts, scan.hypotheses)
