"""Read search graphs that Moses writes with ``-output-search-graph``.

Files of ``-output-search-graph-extended`` are read, too.

One file holds all sentences, with one line per hypothesis. A hypothesis extends the hypothesis
``back``. A recombined hypothesis is another edge into the node of the hypothesis that beat it.
Hypotheses with ``forward=-1`` end the sentence::

    0 hyp=0 stack=0
    0 hyp=4 stack=1 back=0 score=-1.5 transition=-1.5 forward=-1 fscore=0.0 covered=0-0 out=a
    0 hyp=5 stack=1 back=0 score=-2.0 transition=-2.0 recombined=4 forward=-1 ... out=an

The extended form (``-output-search-graph-extended``) has features, and the source words::

    ... covered=0-0 scores="core=(0.000,-1.000,-1.500) WT_ein~a=1.000" out="ein|a"

``core`` are the dense features in the order of the ``[feature]`` section of moses.ini, without
their names. The plain form has only the score of each step at the decoder's weights. This is
enough to list translations or to vote among them, but not to tune weights.

Moses writes the extended form since 1.0 (January 2013). The plain form is older; before 0.91
(October 2012) the scores of an option stood behind its words, ``out=the house , pC=-1.5, c=-2.5``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath

import numpy as np

from formats.decimals import parse_numbers
from formats.errors import FormatError, quote
from formats.graphs.hypergraph import TAIL, HypergraphFile, hypergraph_names
from formats.graphs.loose_edges import LooseEdges, parse_finite, sort_edges
from formats.moses.ini import MosesIni
from formats.text import iter_chunks
from formats.words import PAD, Floats, Ints32, Positions, pad_with_newlines

TRANSITION = "transition"
"""The only feature of a plain graph: the score of a step at the decoder's weights."""

_INITIAL = re.compile(rb"([0-9]{1,18}) hyp=0 stack=0(?: forward=(-?)[0-9]+ fscore=\S+)?[ \r]*")
_HYPOTHESIS = re.compile(
    rb"([0-9]{1,18}) hyp=([0-9]{1,18}) stack=([0-9]{1,9}) back=([0-9]{1,18})"
    rb" score=\S+ transition=(\S+)(?: recombined=([0-9]{1,18}))?"
    rb" forward=(-?)[0-9]+ fscore=\S+ covered=[0-9]+-[0-9]+"
    rb'(?: scores="core=\(([^)]*)\) ?(.*?)" out="(.*)"| out=(.*?)(?: ?, pC=\S+, c=\S+)?)'
)
_BEGIN, _END = b"<s>", b"</s>"


def read_search_graphs(
    path: str | PathLike[str], core: Sequence[str] | None = None
) -> Iterator[tuple[int, HypergraphFile]]:
    """Yield sentence ids with their graphs, in bounded memory.

    Each graph has the form of Moses' hypergraphs: a first node ``<s>``, and ``</s>`` on the edges
    to the goal. Hypotheses that no translation uses are omitted. In the plain form, a sentence
    with only the initial hypothesis has the empty translation: Moses prints this for an empty
    sentence and also if the search failed.

    Args:
        core: names of the dense features of an extended graph (``core_names``); by default
            ``core1``, ``core2`` and so on.

    Raises:
        FormatError: the file has another format; a hypothesis is repeated, extends or was
            recombined with a missing hypothesis, or covers no more words than the one it
            extends; a sentence has no complete hypothesis or occurs in two places; or a value is
            not a finite number.
    """
    path = fspath(path)
    finished: set[int] = set()
    sentence: _Sentence | None = None
    for number, line in _lines(path):
        match = _HYPOTHESIS.fullmatch(line) or _INITIAL.fullmatch(line)
        if match is None:
            raise FormatError(
                f"{quote(line)} is not a hypothesis of a search graph",
                path=path,
                line=number,
                remedy="Expected id hyp=... stack=... back=...; check that the file is complete",
            )
        if sentence is None or int(match[1]) != sentence.number:
            if sentence is not None:
                yield sentence.number, sentence.to_hypergraph(core)
                finished.add(sentence.number)
            sentence = _Sentence(path, int(match[1]), number)
            if sentence.number in finished:
                raise sentence.error(
                    number,
                    f"sentence {sentence.number} occurs in two places",
                    "Sort the file by sentence id, with one graph per sentence",
                )
        if match.re is _HYPOTHESIS:
            sentence.add(match, number)
        else:
            sentence.add_initial(match, number)
    if sentence is None:
        raise FormatError(
            "the file has no search graphs", path=path, remedy="Check that it is complete"
        )
    yield sentence.number, sentence.to_hypergraph(core)


def core_names(ini: MosesIni) -> tuple[str, ...]:
    """Return the hypergraph names of the dense features in the order of ``core``.

    Raises:
        FormatError: a feature or a weight of the configuration cannot be read.
    """
    return hypergraph_names(
        (feature.name, len(ini.weights.get(feature.name, ()))) for feature in ini.features
    )


@dataclass
class _Sentence:
    """The hypotheses of one sentence read so far, without the initial one."""

    path: str
    number: int
    first_line: int
    initial: int | None = None
    initial_is_last: bool | None = None
    ids: list[int] = field(default_factory=list)
    stacks: list[int] = field(default_factory=list)
    backs: list[int] = field(default_factory=list)
    transitions: list[bytes] = field(default_factory=list)
    recombined: list[bytes | None] = field(default_factory=list)
    is_last: list[bool] = field(default_factory=list)
    cores: list[bytes | None] = field(default_factory=list)
    sparse: list[bytes] = field(default_factory=list)
    targets: list[bytes] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def error(self, line: int | None, message: str, remedy: str) -> FormatError:
        return FormatError(message, path=self.path, line=line, remedy=remedy)

    def add_initial(self, match: re.Match[bytes], line: int) -> None:
        if self.initial is not None:
            raise self.error(line, "duplicate hypothesis 0", "Remove one of the two")
        self.initial = line
        self.initial_is_last = None if match[2] is None else match[2] == b"-"

    def add(self, match: re.Match[bytes], line: int) -> None:
        """Add any other hypothesis."""
        _, number, stack, back, transition, winner, last, core, sparse, both, target = (
            match.groups()
        )
        if both is not None:
            _source, bar, target = both.partition(b"|")
            if not bar or b"|" in target:
                raise self.error(
                    line,
                    f"{quote(both)} is not 'source|target'",
                    "If words have factors, write the graph with -output-search-graph-hypergraph",
                )
        self.ids.append(int(number))
        self.stacks.append(int(stack))
        self.backs.append(int(back))
        self.transitions.append(transition)
        self.recombined.append(winner)
        self.is_last.append(last == b"-")
        self.cores.append(core)
        self.sparse.append(sparse or b"")
        self.targets.append(target)
        self.lines.append(line)

    def to_hypergraph(self, core: Sequence[str] | None) -> HypergraphFile:
        """Build the graph: node 0 starts the sentence, the last node ends it."""
        node_of, covered = self._nodes()
        heads = [node_of[number] for number in self.ids]
        tails = self._tails(node_of, covered)
        ends = sorted({head for head, last in zip(heads, self.is_last, strict=True) if last})
        # The plain form does not mark whether the initial hypothesis ends the sentence.
        if self.initial_is_last or (self.initial_is_last is None and not self.ids):
            ends.insert(0, 0)
        if not ends:
            raise self.error(
                self.first_line,
                f"sentence {self.number} has no complete hypothesis (forward=-1)",
                "The decoder found no translation, or the file is incomplete",
            )
        goal = len(covered)
        covered.append(max(covered[end] for end in ends))
        words, target_offsets, targets = self._targets(len(ends))
        names, indptr, indices, values = self._features(core)
        n_tails = np.ones(1 + len(heads) + len(ends), dtype=np.int64)
        n_tails[0] = 0
        edges = LooseEdges(
            heads=np.array([0, *heads, *[goal] * len(ends)], dtype=np.int64),
            tail_offsets=np.append(0, np.cumsum(n_tails)),
            tails=np.array([*tails, *ends], dtype=np.int64),
            target_offsets=target_offsets,
            targets=targets,
            feature_indptr=np.concatenate([[0], indptr, [indptr[-1]] * len(ends)]),
            feature_indices=indices,
            feature_values=values,
            covered=np.array(covered, dtype=np.int32),
            lines=[self.first_line, *self.lines, *[self.first_line] * len(ends)],
        )
        return sort_edges(self.path, names, words, edges, goal)

    def _nodes(self) -> tuple[dict[int, int], list[int]]:
        """Return the node of each hypothesis, and the source words that each node covers."""
        node_of = {} if self.initial is None else {0: 0}
        covered = [0]
        rows = zip(self.ids, self.stacks, self.recombined, self.lines, strict=True)
        losers = []
        for number, stack, winner, line in rows:
            if number in node_of:
                raise self.error(line, f"duplicate hypothesis {number}", "Remove one of the two")
            if winner is None:
                node_of[number] = len(covered)
                covered.append(stack)
            else:
                losers.append((number, stack, int(winner), line))
        winners = set(node_of)
        for number, stack, winner_id, line in losers:
            if number in node_of:
                raise self.error(line, f"duplicate hypothesis {number}", "Remove one of the two")
            if winner_id not in winners or covered[node_of[winner_id]] != stack:
                raise self.error(
                    line,
                    f"hypothesis {number} was recombined with {winner_id}, "
                    "which does not exist in its stack",
                    "Check that the file is complete",
                )
            node_of[number] = node_of[winner_id]
        return node_of, covered

    def _tails(self, node_of: dict[int, int], covered: list[int]) -> list[int]:
        """Return the node that each hypothesis extends."""
        tails = [node_of.get(back, -1) for back in self.backs]
        for row, (tail, stack) in enumerate(zip(tails, self.stacks, strict=True)):
            if tail < 0:
                raise self.error(
                    self.lines[row],
                    f"hypothesis {self.ids[row]} extends {self.backs[row]}, which does not exist",
                    "Check that the file is complete",
                )
            if covered[tail] >= stack:
                raise self.error(
                    self.lines[row],
                    f"hypothesis {self.ids[row]} (stack={stack}) does not cover more source words "
                    f"than {self.backs[row]}, which it extends",
                    "Set stack= to the number of covered source words",
                )
        return tails

    def _targets(self, n_ends: int) -> tuple[tuple[bytes, ...], Positions, Ints32]:
        """Return words, target offsets and targets of all edges."""
        words = {_BEGIN: 0}
        phrases: dict[bytes, list[int]] = {}
        targets = [0]
        lengths = [0, 1]
        for phrase in self.targets:
            target = phrases.get(phrase)
            if target is None:
                target = [words.setdefault(w, len(words)) for w in phrase.split(b" ") if w]
                phrases[phrase] = target = [TAIL, *target]
            targets += target
            lengths.append(len(target))
        targets += [TAIL, words.setdefault(_END, len(words))] * n_ends
        lengths += [2] * n_ends
        return (
            tuple(words),
            np.cumsum(lengths, dtype=np.int64),
            np.array(targets, dtype=np.int32),
        )

    def _features(
        self, core: Sequence[str] | None
    ) -> tuple[tuple[str, ...], Positions, Ints32, Floats]:
        """Return names, row offsets, columns and values of the features of all hypotheses."""
        n_rows = len(self.ids)
        extended = [text is not None for text in self.cores]
        if not any(extended):
            values = parse_finite(self.transitions)
            for row in np.flatnonzero(np.isnan(values))[:1]:
                raise self._value_error(int(row), TRANSITION, self.transitions[row])
            columns = np.zeros(n_rows, dtype=np.int32)
            return (TRANSITION,)[:n_rows], np.arange(n_rows + 1), columns, values
        if not all(extended):
            line = self.lines[extended.index(False)]
            raise self.error(
                line, "the line has no scores, unlike others of the sentence", "Add scores=..."
            )
        dense = self._dense([text or b"" for text in self.cores])
        names = tuple(core) if core is not None else _default_names(dense.shape[1])
        if len(names) != dense.shape[1]:
            raise self.error(
                self.lines[0],
                f"there are {dense.shape[1]} dense features, but {len(names)} names",
                "Use the moses.ini with which the decoder ran",
            )
        counts, sparse_columns, sparse_names, sparse = self._sparse(names)
        indptr = np.append(0, np.cumsum(counts + len(names)))
        is_dense = np.zeros(int(indptr[-1]), dtype=np.bool_)
        is_dense[(indptr[:-1, None] + np.arange(len(names))).reshape(-1)] = True
        indices = np.empty(len(is_dense), dtype=np.int32)
        values = np.empty(len(is_dense))
        indices[is_dense] = np.tile(np.arange(len(names), dtype=np.int32), n_rows)
        values[is_dense] = dense.reshape(-1)
        indices[~is_dense] = sparse_columns
        values[~is_dense] = sparse
        return (*names, *sparse_names), indptr, indices, values

    def _dense(self, cores: Sequence[bytes]) -> Floats:
        """Return the numbers in the brackets, ``[n_rows, n_core]``."""
        widths = [core.count(b",") + 1 if core else 0 for core in cores]
        for row, width in enumerate(widths):
            if width != widths[0]:
                raise self.error(
                    self.lines[row],
                    f"{width} dense features, but {widths[0]} in line {self.lines[0]}",
                    "Write the same dense features for all hypotheses",
                )
        if not widths[0]:
            return np.zeros((len(cores), 0))
        padded = pad_with_newlines(b",".join(cores) + b",")
        ends = np.flatnonzero(padded == ord(","))
        values = parse_numbers(padded, np.append(PAD, ends[:-1] + 1), ends)
        for place in np.flatnonzero(np.isnan(values))[:1]:
            row, column = divmod(int(place), widths[0])
            name = f"dense feature {column + 1}"
            raise self._value_error(row, name, cores[row].split(b",")[column])
        return values.reshape(len(cores), widths[0])

    def _sparse(self, dense: Sequence[str]) -> tuple[Positions, list[int], tuple[str, ...], Floats]:
        """Return how many sparse features each row has; their columns, names and values."""
        numbers = {name.encode("utf-8", "surrogateescape"): k for k, name in enumerate(dense)}
        counts = np.zeros(len(self.ids), dtype=np.int64)
        columns: list[int] = []
        texts: list[bytes] = []
        owners: list[int] = []
        taken = set(numbers)
        for row, text in enumerate(self.sparse):
            if not text:
                continue
            pairs = [token.rpartition(b"=") for token in text.split()]
            named = {name for name, _, _ in pairs}
            if b"" in named or len(named) < len(pairs) or named & taken:
                raise self.error(
                    self.lines[row],
                    f"cannot parse sparse features {quote(text)}",
                    "Expected name=value name=value, without duplicate names",
                )
            counts[row] = len(pairs)
            columns += [numbers.setdefault(name, len(numbers)) for name, _, _ in pairs]
            texts += [value for _, _, value in pairs]
            owners += [row] * len(pairs)
        values = parse_finite(texts)
        for place in np.flatnonzero(np.isnan(values))[:1]:
            raise self._value_error(owners[place], "a sparse feature", texts[place])
        names = [name.decode("utf-8", "surrogateescape") for name in numbers]
        return counts, columns, tuple(names[len(dense) :]), values

    def _value_error(self, row: int, name: str, text: bytes) -> FormatError:
        return self.error(
            self.lines[row],
            f"value of {name} is {quote(text)}",
            "Expected a finite decimal number",
        )


def _default_names(count: int) -> tuple[str, ...]:
    """Return default names, without underscores: those mark sparse features."""
    return tuple(f"core{column}" for column in range(1, count + 1))


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    r"""Yield numbers and texts of non-empty lines, without their ``\n`` or ``\r\n``."""
    rest = b""
    number = 0
    for chunk in iter_chunks(path):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            number += 1
            if line := line.removesuffix(b"\r"):
                yield number, line
    if rest:
        yield number + 1, rest
