"""Check the pages of a data file before LMDB trusts them.

LMDB has no checksums. It checks neither the length of its file nor what is in a page: a damaged
page ends the process by a signal, hides records, or brings an earlier transaction back. This module
reads the trees from the file, not through the map, as they were committed by one transaction. Every
page that is in use must be where its number says, once, and not free; every node within its page;
every key between those of its parent; and every database as large as its record says. What the
records themselves hold is not looked at: ``checksums`` does that.

The layout (``lmdb.h``, ``mdb.c`` of LMDB 0.9)::

    page      number u64, padding u16, flags u16, end of the offsets u16, begin of the nodes u16;
              offsets u16; nodes from the end of the page.
              On the first page of a large value, the two u16 are the number of its pages
    meta      magic u32, version u32, address u64, map size u64, two trees, last page u64, txn u64
    tree      padding u32, flags u16, depth u16, three u64, entries u64, root page u64
    node      low u16, high u16, flags u16, key size u16, key, data

In a branch, low, high and flags are the number of the child page. In a leaf, low and high are the
size of its data, which with the flag are on pages of their own. The first tree has lists of free
pages, the second the databases by name. A transaction writes one of two meta pages in turn.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import ge
from pathlib import Path
from typing import NamedTuple

_PAGE = struct.Struct("<Q2xHHH")
_HEADER = 16
_META = struct.Struct("<IIQQ48s48sQQ")
_TREE = struct.Struct("<IHH3QQQ")
_NODE = struct.Struct("<HHHH")
_NUMBER = struct.Struct("<Q")
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_BRANCH, _LEAF, _LARGE, _META_PAGE = 1, 2, 4, 8
_ELSEWHERE, _DATABASE = 1, 2
_NUMERIC_KEYS, _NO_DIRECTORY = 8, 0x4000
_NOWHERE = 2**64 - 1
_MOST_DEPTH = 32
_PAGE_SIZES = tuple(1 << power for power in range(9, 17))

HAS_KNOWN_LAYOUT = sys.byteorder == "little" and struct.calcsize("P") == 8
"""Whether files of this machine have the layout above; those of others are not checked."""


class DamagedPages(ValueError):
    """A page is damaged; the message says where."""


class MissingPages(DamagedPages):
    """The file ends before some of its pages.

    Attributes:
        missing: their number.
        pages: the number of all pages.
    """

    def __init__(self, missing: int, pages: int) -> None:
        super().__init__(f"{missing} of its {pages} pages are beyond its end")
        self.missing = missing
        self.pages = pages


class _Tree(NamedTuple):
    """The root of a tree of pages."""

    padding: int
    flags: int
    depth: int
    branches: int
    leaves: int
    large: int
    entries: int
    root: int


class Meta(NamedTuple):
    """The content of a meta page."""

    page_size: int
    free: _Tree
    main: _Tree
    last: int
    transaction: int


def read_meta(path: Path, transaction: int | None = None) -> Meta | None:
    """Return what a transaction committed, or the last one.

    Args:
        path: the data file.
        transaction: its number.

    Returns:
        None if the file is empty, or that transaction is no longer one of the last two.

    Raises:
        DamagedPages: the meta pages are damaged.
        OSError: the file cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        if not os.fstat(file.fileno()).st_size:
            return None
        metas = _read_metas(file.fileno())
    for meta in metas:
        if transaction in (None, meta.transaction):
            return meta
    return None


def _read_metas(file: int) -> tuple[Meta, Meta]:
    """Return both meta pages, the newer one first."""
    before = None
    while True:
        first = _read_one_meta(os.pread(file, _HEADER + _META.size, 0), 0)
        second = _read_one_meta(os.pread(file, _HEADER + _META.size, first.page_size), 1)
        if first.page_size != second.page_size:
            raise DamagedPages("its two meta pages differ in the size of pages")
        even, odd = first.transaction, second.transaction
        # A transaction writes the page of its parity; before the first one, both have number 0.
        is_in_turn = even % 2 == 0 and odd % 2 == 1 and abs(even - odd) == 1
        newer, older = (first, second) if even > odd else (second, first)
        if (is_in_turn and not _is_later(file, older)) or even == odd == 0:
            return newer, older
        if (even, odd) == before:
            raise DamagedPages(f"its two meta pages have the transactions {even} and {odd}")
        before = even, odd  # a writer may have committed between the two reads


def _is_later(file: int, meta: Meta) -> bool:
    """Return whether free pages show a later transaction than the meta page.

    LMDB would take the one before it for the last. The pages of an earlier transaction may have
    been reused, so they tell nothing if they are not as expected.
    """
    number = meta.free.root
    for level in range(1, min(meta.free.depth, _MOST_DEPTH) + 1):
        if number >= meta.last:
            return False
        page = os.pread(file, meta.page_size, number * meta.page_size)
        try:
            held, flags, lower, _ = _PAGE.unpack_from(page)
            if held != number or flags != (_LEAF if level == meta.free.depth else _BRANCH):
                return False
            (offset,) = struct.unpack_from("<H", page, lower - 2)
            low, high, flags, _ = _NODE.unpack_from(page, offset)
            if level == meta.free.depth:
                return bool(_NUMBER.unpack_from(page, offset + _NODE.size)[0] > meta.transaction)
        except struct.error:
            return False
        number = low | high << 16 | flags << 32
    return False


def _read_one_meta(data: bytes, number: int) -> Meta:
    try:
        page, flags, _, _ = _PAGE.unpack_from(data)
        magic, version, _, _, free, main, last, transaction = _META.unpack_from(data, _HEADER)
    except struct.error:
        raise DamagedPages(f"its meta page {number} is missing") from None
    meta = Meta(0, _Tree(*_TREE.unpack(free)), _Tree(*_TREE.unpack(main)), last, transaction)
    page_size = meta.free.padding
    if (
        (page, flags, magic, version) != (number, _META_PAGE, _MAGIC, _VERSION)
        or page_size not in _PAGE_SIZES
        or meta.free.flags & ~_NO_DIRECTORY != _NUMERIC_KEYS
        or meta.main.flags
    ):
        raise DamagedPages(f"its meta page {number} is damaged, or it is not an LMDB file")
    return meta._replace(page_size=page_size)


def check_pages(path: Path, meta: Meta, databases: Collection[str], *, large: bool) -> None:
    """Check all pages that a transaction committed.

    The caller keeps the transaction open, so that no other process reuses its pages.

    Args:
        path: the data file.
        meta: what the transaction committed.
        databases: the names of databases that any transaction has.
        large: whether to look at the pages of large values, too: LMDB believes their number when
            it copies or deletes values, but not when it reads them.

    Raises:
        DamagedPages: a page is damaged.
        MissingPages: the file is too short.
        OSError: the file cannot be read.
    """
    with _open_pages(path, meta, large=large) as pages:
        pages.check(frozenset(name.encode() for name in databases))


@contextmanager
def _open_pages(path: Path, meta: Meta, *, large: bool) -> Iterator[_Pages]:
    with path.open("rb", buffering=0) as file:
        yield _Pages(file.fileno(), meta, large, os.fstat(file.fileno()).st_size // meta.page_size)


class _Node(NamedTuple):
    """A node of a leaf: its key, its flags, and its data unless they are large."""

    key: bytes
    flags: int
    data: bytes


@dataclass
class _Pages:
    """The pages of one transaction.

    Attributes:
        file: descriptor of the data file.
        meta: the transaction.
        large: whether to read the first page of large values.
        n_pages: whole pages in the file.
        states: for each page in the file whether it is free or in use.
    """

    file: int
    meta: Meta
    large: bool
    n_pages: int
    states: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self.states = bytearray(self.n_pages)

    def check(self, databases: frozenset[bytes]) -> None:
        """Check every page; see ``check_pages``."""
        self._take(0, 2, "its meta pages")
        beyond = self.meta.last + 1 - self.n_pages
        free: list[int] = []
        newest = 0
        try:
            for node in self._walk(self.meta.free, "the list of free pages", with_data=True):
                free += _read_list(node.data)
                newest = int.from_bytes(node.key, "little")
        except DamagedPages:
            if beyond <= 0:
                raise
        if beyond > 0:
            # Free pages at the end need not have been written.
            missing = beyond - sum(number >= self.n_pages for number in set(free))
            if missing:
                raise MissingPages(missing, self.meta.last + 1)
        for number in free:
            if number > self.meta.last:
                raise DamagedPages(f"page {number} is free, but the last page is {self.meta.last}")
            if number < self.n_pages:
                self._take(number, 1, "the free pages")
        # Every transaction leaves free pages, except the first.
        if self.meta.transaction > 1 and newest != self.meta.transaction:
            raise DamagedPages(
                f"its last transaction is {newest}, but its meta page says {self.meta.transaction}"
            )
        nodes = self._walk(self.meta.main, "the list of databases", with_data=True)
        for node in nodes:
            if node.flags != _DATABASE or len(node.data) != _TREE.size:
                raise DamagedPages("the list of databases is damaged")
            what = f"the database {node.key.decode(errors='replace')}"
            tree = _Tree(*_TREE.unpack(node.data))
            if tree.flags or tree.padding:
                raise DamagedPages(f"{what} has invalid settings")
            self._walk(tree, what)
        # They are made by the first transaction. A writer would make the missing one anew.
        lost = sorted(databases - {node.key for node in nodes}) if nodes else []
        if lost:
            raise DamagedPages(f"the database {lost[0].decode()} is missing")

    def _take(self, first: int, n: int, what: str) -> None:
        """Mark pages, each of which may be in one place only."""
        if first + n > min(self.n_pages, self.meta.last + 1):
            raise DamagedPages(f"{what} refers to page {first + n - 1}, which does not exist")
        if any(self.states[first : first + n]):
            raise DamagedPages(f"{what} refers to page {first}, which is in use elsewhere, or free")
        self.states[first : first + n] = b"\1" * n

    def _walk(self, tree: _Tree, what: str, *, with_data: bool = False) -> list[_Node]:
        """Check a tree; return the nodes of its leaves, in order, if requested."""
        walk = _Walk(self, what, tree, with_data)
        entries = 0
        if tree.root != _NOWHERE:
            if not 0 < tree.depth <= _MOST_DEPTH:
                raise DamagedPages(f"{what} has an impossible depth")
            entries = walk.visit(tree.root, 1, b"", None)
        if entries != tree.entries:
            raise DamagedPages(f"{what} has {entries} of {tree.entries} entries")
        return walk.nodes

    def read(self, number: int, what: str) -> bytes:
        """Return one page, which nothing else refers to."""
        self._take(number, 1, what)
        return os.pread(self.file, self.meta.page_size, number * self.meta.page_size)

    def take_large(self, number: int, size: int, what: str, *, with_data: bool) -> bytes:
        """Check a value that has pages of its own; return it if requested."""
        n_pages = (_HEADER - 1 + size) // self.meta.page_size + 1
        if not (self.large or with_data):
            self._take(number, n_pages, what)
            return b""
        at = number * self.meta.page_size
        held = os.pread(self.file, _HEADER + size if with_data else _HEADER, at)
        page, flags, low, high = _PAGE.unpack_from(held)
        # A value that replaced a larger one has more pages than it needs.
        if (page, flags) != (number, _LARGE) or (low | high << 16) < n_pages:
            raise DamagedPages(f"page {number} of {what} is not where it belongs, or damaged")
        self._take(number, low | high << 16, what)
        return held[_HEADER:]


def _read_list(data: bytes) -> list[int]:
    """Return the numbers of free pages that a transaction left."""
    count = _NUMBER.unpack_from(data)[0] if len(data) >= _NUMBER.size else _NOWHERE
    if _NUMBER.size * (count + 1) > len(data):
        raise DamagedPages("the list of free pages is damaged")
    return list(struct.unpack_from(f"<{count}Q", data, _NUMBER.size))


@dataclass
class _Walk:
    """A walk through one tree.

    Attributes:
        pages: the pages of the file.
        what: the name of the tree.
        tree: its root.
        with_data: whether to keep the nodes of leaves.
        nodes: these nodes.
    """

    pages: _Pages
    what: str
    tree: _Tree
    with_data: bool
    nodes: list[_Node] = field(default_factory=list)

    def visit(self, number: int, level: int, first: bytes, end: bytes | None) -> int:
        """Check the pages under one, whose keys are from ``first`` and before ``end``.

        Returns:
            The number of their entries.
        """
        page = self.pages.read(number, self.what)
        held, flags, lower, upper = _PAGE.unpack_from(page)
        is_leaf = level == self.tree.depth
        if held != number or flags != (_LEAF if is_leaf else _BRANCH):
            raise DamagedPages(f"page {number} of {self.what} is not where it belongs, or damaged")
        try:
            if not _HEADER < lower <= upper:
                raise DamagedPages
            nodes = self._read_nodes(page, lower)
            self._check_keys([key for _, _, _, key in nodes], first, end, is_leaf=is_leaf)
            filled = self._visit_leaf(page, nodes) if is_leaf else _measure_branch(nodes)
            # Nodes leave no gaps.
            if filled != len(page) - upper:
                raise DamagedPages
        except (DamagedPages, struct.error) as error:
            raise DamagedPages(str(error) or f"page {number} of {self.what} is damaged") from None
        if is_leaf:
            return len(nodes)
        firsts = [first, *(self._order(key) for _, _, _, key in nodes[1:])]
        ends = [*firsts[1:], end]
        return sum(
            self.visit(low | high << 32, level + 1, firsts[place], ends[place])
            for place, (_, low, high, _) in enumerate(nodes)
        )

    def _read_nodes(self, page: bytes, lower: int) -> list[tuple[int, int, int, bytes]]:
        """Return the begin of the data of each node, two numbers of it, and its key."""
        nodes = []
        for offset in struct.unpack_from(f"<{(lower - _HEADER) // 2}H", page, _HEADER):
            low, high, flags, key_size = _NODE.unpack_from(page, offset)
            begin = offset + _NODE.size + key_size
            nodes.append((begin, low | high << 16, flags, page[offset + _NODE.size : begin]))
        return nodes

    def _order(self, key: bytes) -> bytes:
        """Return a key that sorts as LMDB sorts it."""
        return key[::-1] if self.tree.flags & _NUMERIC_KEYS else key

    def _check_keys(
        self, keys: list[bytes], first: bytes, end: bytes | None, *, is_leaf: bool
    ) -> None:
        """Check that keys ascend within their bounds."""
        if self.tree.flags & _NUMERIC_KEYS:
            if any(len(key) != _NUMBER.size for key in keys[not is_leaf :]):
                raise DamagedPages
            keys = [key[::-1] for key in keys]
        elif not is_leaf and len(keys) < 2:
            # A branch has two children, except where free pages are listed.
            raise DamagedPages
        if not is_leaf:
            keys[0] = first  # is not looked at, and usually empty
        if keys[0] < first or (end is not None and keys[-1] >= end):
            raise DamagedPages
        if any(map(ge, keys, keys[1:])):
            raise DamagedPages

    def _visit_leaf(self, page: bytes, nodes: list[tuple[int, int, int, bytes]]) -> int:
        """Check the data of a leaf; return the bytes of all its nodes."""
        filled = 0
        for begin, size, flags, key in nodes:
            if flags not in (0, _ELSEWHERE, _DATABASE):
                raise DamagedPages
            here = _NUMBER.size if flags & _ELSEWHERE else size
            if begin + here > len(page):
                raise DamagedPages
            filled += (_NODE.size + len(key) + here + 1) & ~1
            data = b""
            if flags & _ELSEWHERE:
                (number,) = _NUMBER.unpack_from(page, begin)
                data = self.pages.take_large(number, size, self.what, with_data=self.with_data)
            elif self.with_data:
                data = page[begin : begin + size]
            if self.with_data:
                self.nodes.append(_Node(key, flags, data))
        return filled


def _measure_branch(nodes: list[tuple[int, int, int, bytes]]) -> int:
    return sum((_NODE.size + len(key) + 1) & ~1 for _, _, _, key in nodes)
