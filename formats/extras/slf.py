"""Read lattices in the HTK standard lattice format (SLF).

Moses and other programs write them.

A file is one lattice: a header of ``name=value`` fields, then a line for each node (``I=``) and
each link (``J=``); the lines of nodes may be left out (HTK Book, chapter 16)::

    VERSION=1.0
    UTTERANCE=0
    base=10 lmscale=9.5 wdpenalty=-0.5
    N=3 L=2
    I=0
    I=1 W=the
    I=2 W=end
    J=0 S=0 E=1 a=-3.5 l=-0.5
    J=1 S=1 E=2 a=-2.5 l=-1.25

A word is on a link or on the node to which the link leads. Each kind of score is a feature under
its full name, converted to natural logarithms from any base: ``acoustic``, ``language``, ``ngram``,
``pronunciation``, ``x1`` and so on; and ``words`` if the header has a word penalty. The
header's scales are the weights (``slf_scales``).

``moses -output-search-graph-slf`` names ``x1`` and so on in comments; this reader uses these names.
Moses gives the first word of each phrase the feature values of the whole hypothesis, from the
beginning of the sentence on, and the other words of the phrase zeros. The value of a step is the
difference to the previous hypothesis (``_subtract_sums``). This is well defined, since every
hypothesis has its own node; only the last node, whose incoming links have no words, joins several.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath

import numpy as np

from formats.decimals import parse_number
from formats.errors import FormatError, quote
from formats.extras.slf_records import Fields, Lattice, SlfRecord, read_lattice
from formats.graphs.any_graph import GraphFormat
from formats.graphs.hypergraph import TAIL, HypergraphFile
from formats.graphs.loose_edges import LooseEdges, parse_finite, sort_edges
from formats.words import Floats, Ints32, Positions


def _subtract_sums(
    lattice: Lattice, tails: Sequence[int], heads: Sequence[int], first: int, totals: Floats
) -> Floats:
    """Return the feature values of each link, without those of the links before it.

    Args:
        lattice: the lattice, with links in the order of the search.
        first: the node where all sums are 0.
        totals: float64 ``[n_links, n_features]``; the sums in the file.

    Returns:
        float64 ``[n_links, n_features]``.
    """
    nothing = np.zeros(totals.shape[1])
    reached = {first: nothing}
    added = np.zeros_like(totals)
    has_values = (totals != 0).any(axis=1)
    for row, (tail, head, link) in enumerate(zip(tails, heads, lattice.links, strict=True)):
        before = reached.get(tail)
        if before is None:
            raise lattice.error(
                link.line,
                "a link precedes the links to its start node",
                "Keep Moses' order of links: their values are cumulative",
            )
        if b"W" not in link.fields:
            continue
        if head in reached:
            raise lattice.error(
                link.line,
                "two hypotheses lead to the same node",
                "Use a lattice as Moses writes it: its values are cumulative",
            )
        if has_values[row]:
            added[row] = totals[row] - before
            reached[head] = totals[row]
        else:
            reached[head] = before
    return added


WORDS = "words"
_SCORES = {b"a": "acoustic", b"l": "language", b"n": "ngram", b"r": "pronunciation"}
_SCALES = {
    b"acscale": "acoustic",
    b"lmscale": "language",
    b"ngscale": "ngram",
    b"prscale": "pronunciation",
    b"wdpenalty": WORDS,
}
_EXTRA = re.compile(rb"x[0-9]{1,9}")
_EXTRA_SCALE = re.compile(rb"(x[0-9]{1,9})scale")
_NUMBER = re.compile(rb"[0-9]{1,18}")
_NULL = b"!NULL"
_NEAR_ONE = 1e-3  # a rounded base such as 2.718 means e
_BOUNDARIES = {b"!SENT_START": b"<s>", b"!SENT_END": b"</s>"}


def read_slf(path: str | PathLike[str]) -> HypergraphFile:
    """Read a lattice, plain or compressed; ``covered`` is 0 for all nodes.

    The first node is the header's ``start=``, or else the lowest node without incoming links. The
    last node is the header's ``end=``, or else the highest node without outgoing links (Moses
    writes dead ends).

    Raises:
        FormatError: the file is not a lattice or unsupported (sub-lattices, backward lattices);
            the announced numbers of nodes or links do not match; a node or link is repeated; a
            link leads to a missing node; there is a cycle, or no path from the first node to the
            last; or a score is not a finite number.
    """
    lattice = read_lattice(fspath(path))
    if lattice.header.get(b"dir", b"f") not in (b"f", b"forward"):
        message = f"unsupported direction {quote(lattice.header[b'dir'])}"
        raise lattice.error(lattice.header_lines[b"dir"], message, "Write a forward lattice: dir=f")
    joined = _resolve_links(lattice)
    words: dict[bytes, int] = {}
    scores = _Scores(lattice)
    targets: list[int] = []
    target_offsets = [0]
    first = joined.nodes[joined.first]
    links: list[tuple[SlfRecord, list[int], Fields]] = [(first, [], first.fields)]
    for link, head in zip(lattice.links, joined.heads, strict=True):
        of_head = joined.nodes[head].fields
        links.append((link, [TAIL], {**of_head, **link.fields} if of_head else link.fields))
    for record, tail, fields in links:
        target = _target(words, fields.get(b"W", _NULL))
        targets += tail + target
        target_offsets.append(len(targets))
        scores.add(fields, record.line, bool(target))
    names, indptr, indices, values = scores.to_rows()
    if lattice.names:
        dense = np.zeros((len(links), len(names)))
        dense[np.repeat(np.arange(len(links)), np.diff(indptr)), indices] = values
        dense[1:] = _subtract_sums(lattice, joined.tails, joined.heads, joined.first, dense[1:])
        indptr = np.arange(len(links) + 1) * len(names)
        indices = np.tile(np.arange(len(names), dtype=np.int32), len(links))
        values = dense.reshape(-1)
    n_tails = np.ones(len(links), dtype=np.int64)
    n_tails[0] = 0
    edges = LooseEdges(
        heads=np.array([joined.first, *joined.heads], dtype=np.int64),
        tail_offsets=np.append(0, np.cumsum(n_tails)),
        tails=np.array(joined.tails, dtype=np.int64),
        target_offsets=np.array(target_offsets, dtype=np.int64),
        targets=np.array(targets, dtype=np.int32),
        feature_indptr=indptr,
        feature_indices=indices,
        feature_values=values,
        covered=np.zeros(len(joined.nodes), dtype=np.int32),
        lines=[record.line for record, _, _ in links],
    )
    return sort_edges(lattice.path, names, tuple(words), edges, joined.last)


def slf_scales(path: str | PathLike[str]) -> dict[str, float]:
    """Return the weights in the header by feature name.

    Raises:
        FormatError: the file is not a lattice, or a weight is not a finite number.
    """
    lattice = read_lattice(fspath(path))
    scales: dict[str, float] = {}
    for key, text in lattice.header.items():
        extra = _EXTRA_SCALE.fullmatch(key)
        name = _name(lattice, extra[1]) if extra else _SCALES.get(key)
        if name is not None:
            scales[name] = parse_number(text)
            if math.isnan(scales[name]):
                raise _value_error(lattice, lattice.header_lines[key], key.decode(), text)
    return scales


def _target(words: dict[bytes, int], word: bytes) -> list[int]:
    """Return a list with the id of a word, or an empty list for a null word."""
    if word in (_NULL, b""):
        return []
    return [words.setdefault(_BOUNDARIES.get(word, word), len(words))]


def _name(lattice: Lattice, key: bytes) -> str | None:
    """Return the feature name of a field, or None."""
    if lattice.names:
        return lattice.names.get(key)
    return key.decode() if _EXTRA.fullmatch(key) else _SCORES.get(key)


def _value_error(lattice: Lattice, line: int, name: str, text: bytes) -> FormatError:
    return lattice.error(
        line, f"value of {name} is {quote(text)}", "Expected a finite decimal number"
    )


@dataclass(frozen=True)
class _Links:
    """The heads and tails of links; nodes are numbered by first appearance.

    Attributes:
        nodes: the record of each node; None if the file omits it.
    """

    nodes: Sequence[SlfRecord]
    heads: Sequence[int]
    tails: Sequence[int]
    first: int
    last: int


def _resolve_links(lattice: Lattice) -> _Links:
    """Check the numbers of nodes and links, and find the first and last node."""
    defined = _index_records(lattice, lattice.nodes, b"I")
    _index_records(lattice, lattice.links, b"J")
    n_nodes = lattice.count(b"N")
    numbers = {number: place for place, number in enumerate(defined)}
    ends: dict[bytes, list[int]] = {b"S": [], b"E": []}
    for link in lattice.links:
        for key, nodes_of_links in ends.items():
            number = _parse_integer(lattice, link, key)
            if number >= n_nodes or (defined and number not in defined):
                message = f"node {number} does not exist"
                raise lattice.error(link.line, message, f"Use the {n_nodes} nodes from 0 on")
            nodes_of_links.append(numbers.setdefault(number, len(numbers)))
    if not numbers:
        numbers[0] = 0
    tails, heads = ends.values()
    nodes = [_link_fields(defined.get(number)) for number in numbers]
    first = _find_end(lattice, b"start", numbers, set(heads), min(numbers))
    last = _find_end(lattice, b"end", numbers, set(tails), max(numbers))
    return _Links(nodes, heads, tails, first, last)


def _link_fields(record: SlfRecord | None) -> SlfRecord:
    """Return a node's fields for its incoming links: word ``W`` and its score ``a``."""
    if record is None:
        return SlfRecord(1, {})
    return SlfRecord(record.line, {k: record.fields[k] for k in (b"W", b"a") if k in record.fields})


def _find_end(
    lattice: Lattice, key: bytes, numbers: dict[int, int], joined: set[int], usual: int
) -> int:
    """Return the first or last node: from the header, or with links on one side only."""
    value = lattice.header.get(key)
    if value is not None:
        if not _NUMBER.fullmatch(value) or int(value) not in numbers:
            message = f"{key.decode()}={value.decode('utf-8', 'replace')} is not a node"
            raise lattice.error(lattice.header_lines[key], message, "Correct the header")
        return numbers[int(value)]
    candidates = [place for place in numbers.values() if place not in joined]
    if len(candidates) == 1:
        return candidates[0]
    if numbers[usual] in candidates:
        return numbers[usual]
    raise lattice.error(
        lattice.links[0].line,
        f"the {key.decode()} node of the lattice is ambiguous: {len(candidates)} candidates",
        f"Add {key.decode()}=NUMBER to the header",
    )


def _index_records(
    lattice: Lattice, records: Sequence[SlfRecord], key: bytes
) -> dict[int, SlfRecord]:
    """Return nodes or links by their numbers."""
    indexed: dict[int, SlfRecord] = {}
    for record in records:
        number = _parse_integer(lattice, record, key)
        if number in indexed:
            what = "node" if key == b"I" else "link"
            raise lattice.error(record.line, f"duplicate {what} {number}", "Remove one of the two")
        indexed[number] = record
    return indexed


def _parse_integer(lattice: Lattice, record: SlfRecord, key: bytes) -> int:
    """Return an integer in a record."""
    text = record.fields.get(key, b"")
    if not _NUMBER.fullmatch(text):
        message = f"{key.decode()}={text[:80].decode('utf-8', 'replace')} is not an integer"
        raise lattice.error(
            record.line, message, "Expected numbers of nodes and links: J=0 S=0 E=1"
        )
    return int(text)


@dataclass
class _Scores:
    """The scores of links as features."""

    lattice: Lattice
    names: dict[str, int] = field(default_factory=dict)
    known: dict[tuple[bytes, ...], list[tuple[bytes, int]]] = field(default_factory=dict)
    indptr: list[int] = field(default_factory=lambda: [0])
    indices: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def add(self, fields: Fields, line: int, has_word: bool) -> None:
        """Add a link."""
        keys = tuple(fields)
        columns = self.known.get(keys)
        if columns is None:
            feature_names = [(key, _name(self.lattice, key)) for key in keys]
            columns = [
                (key, self.names.setdefault(name, len(self.names)))
                for key, name in feature_names
                if name is not None
            ]
            self.known[keys] = columns
        self.indices += [column for _, column in columns]
        self.texts += [fields[key] for key, _ in columns]
        if has_word and b"wdpenalty" in self.lattice.header:
            self.indices.append(self.names.setdefault(WORDS, len(self.names)))
            self.texts.append(b"1")
        self.indptr.append(len(self.texts))
        self.lines.append(line)

    def to_rows(self) -> tuple[tuple[str, ...], Positions, Ints32, Floats]:
        """Return names, row offsets, columns and values in natural logarithms."""
        names = tuple(self.names)
        values = parse_finite(self.texts)
        indices = np.array(self.indices, dtype=np.int32)
        is_score = indices != self.names.get(WORDS, -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            values[is_score] = _to_natural_log(self.lattice, values[is_score])
        for place in np.flatnonzero(~np.isfinite(values))[:1]:
            row = int(np.searchsorted(self.indptr, place, side="right")) - 1
            raise _value_error(
                self.lattice, self.lines[row], names[indices[place]], self.texts[place]
            )
        return names, np.array(self.indptr, dtype=np.int64), indices, values


def _to_natural_log(lattice: Lattice, values: Floats) -> Floats:
    """Convert scores to natural logarithms; with base 0 they are probabilities."""
    text = lattice.header.get(b"base", b"2.718281828459045")
    base = parse_number(text)
    if math.isnan(base) or base < 0 or base == 1:
        raise _value_error(lattice, lattice.header_lines[b"base"], "base", text)
    if base == 0:
        return np.log(values)
    factor = math.log(base)
    return values if abs(factor - 1) < _NEAR_ONE else values * factor


SLF = GraphFormat(
    "slf",
    "HTK lattices, also of Moses",
    re.compile(rb"(?:\s|#[^\n]*\n)*[A-Za-z][A-Za-z0-9]*=").match,
    read_slf,
)
