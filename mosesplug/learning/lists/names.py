"""Steps that drop and rename features of n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from formats.nbest.block import NBestList
from mosesplug.errors import UsageError
from mosesplug.settings.lists import parse_renames

_SHOWN = 30
"""Names in a message."""


class DropFeatures:
    """Removes features by name, or by the beginning of their names (``NAME*``).

    Args:
        names: what ``--drop-feature`` names.
        is_strict: whether the end check rejects names of no feature.
    """

    def __init__(self, names: Sequence[str], *, is_strict: bool = True) -> None:
        self._names = {name for name in names if not name.endswith("*")}
        self._prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
        self._is_strict = is_strict
        self._unused = dict.fromkeys(names)
        self._seen: dict[str, None] = {}

    def apply(self, block: NBestList) -> NBestList:
        """Return the block without these features."""
        names = [name for name, _ in block.groups]
        if self._unused:
            self._note((*names, *block.sparse_names))
        kept_groups = [not self._drops(name) for name in names]
        kept_sparse = [not self._drops(name) for name in block.sparse_names]
        if not all(kept_groups):
            columns = np.repeat(kept_groups, [width for _, width in block.groups])
            kept = [
                each for each, is_kept in zip(block.groups, kept_groups, strict=True) if is_kept
            ]
            dense = np.ascontiguousarray(block.dense[:, columns])
            block = replace(block, groups=tuple(kept), dense=dense)
        return block if all(kept_sparse) else _keep_sparse(block, kept_sparse)

    def finish(self) -> None:
        """Raise UsageError for a name that no list has."""
        if self._unused and self._is_strict:
            raise _unknown_error(f"--drop-feature {next(iter(self._unused))}", self._seen)

    def _drops(self, name: str) -> bool:
        return name in self._names or name.startswith(self._prefixes)

    def _note(self, names: Sequence[str]) -> None:
        """Note which names to drop are there."""
        self._seen.update(dict.fromkeys(names[:_SHOWN]))
        present = set(names)
        for wanted in list(self._unused):
            is_prefix = wanted.endswith("*")
            if any(map(_starts(wanted[:-1]), names)) if is_prefix else wanted in present:
                del self._unused[wanted]


def _starts(prefix: str) -> Callable[[str], bool]:
    return lambda name: name.startswith(prefix)


def _keep_sparse(block: NBestList, kept: Sequence[bool]) -> NBestList:
    """Return a block with some of its sparse features."""
    mask = np.array(kept, dtype=np.bool_)
    rank = (np.cumsum(mask) - 1).astype(np.int32)
    stays = mask[block.sparse_indices]
    before = np.concatenate([[0], np.cumsum(stays)])
    return replace(
        block,
        sparse_names=tuple(n for n, each in zip(block.sparse_names, kept, strict=True) if each),
        sparse_indptr=before[block.sparse_indptr],
        sparse_indices=rank[block.sparse_indices[stays]],
        sparse_data=block.sparse_data[stays],
    )


class RenameFeatures:
    """Renames dense features (whole groups) and sparse ones.

    Args:
        renames: what ``--rename`` says, ``OLD=NEW`` each.
        is_strict: whether the end check rejects names of no feature.
    """

    def __init__(self, renames: Sequence[str], *, is_strict: bool = True) -> None:
        self._new = parse_renames(renames)
        self._is_strict = is_strict
        self._unused = dict.fromkeys(self._new)
        self._seen: dict[str, None] = {}

    def apply(self, block: NBestList) -> NBestList:
        """Return the block with the new names.

        Raises:
            UsageError: another feature has a new name already.
        """
        names = [*(name for name, _ in block.groups), *block.sparse_names]
        present = set(names)
        for old, new in self._new.items():
            # Lists that call one feature by two names are fine; two features of one list are not.
            if old in present and new in present and new not in self._new:
                raise UsageError(
                    f"--rename {old}={new}: {block.path} has another feature {new}; choose a "
                    f"new name, or ignore that feature (--drop-feature {new})"
                )
        if self._unused:
            self._seen.update(dict.fromkeys(names[:_SHOWN]))
            for name in self._new.keys() & present:
                self._unused.pop(name, None)
        return replace(
            block,
            groups=tuple((self._new.get(name, name), width) for name, width in block.groups),
            sparse_names=tuple(self._new.get(name, name) for name in block.sparse_names),
        )

    def finish(self) -> None:
        """Raise UsageError for an old name that no list has."""
        if self._unused and self._is_strict:
            old = next(iter(self._unused))
            raise _unknown_error(f"--rename {old}={self._new[old]}", self._seen)


def _unknown_error(option: str, known: Mapping[str, None]) -> UsageError:
    return UsageError(
        f"{option}: no list has this feature; known: {', '.join([*known][:_SHOWN]) or 'none'}"
    )


def original_names(names: Sequence[str], renames: Sequence[str]) -> tuple[str, ...]:
    """Return the names that features have in the files."""
    old = {new: old for old, new in parse_renames(renames).items()}
    return tuple(old.get(name, name) for name in names)
