"""Read cdec's JSON forests: ``--forest_output DIRECTORY``, until October 2014.

Later versions write the same forests in a compiler-dependent binary format that only cdec reads.
One file is one sentence: rules and features by number, then, for each node,
``edges`` that lead to it and the ``node`` itself, tails before heads, the goal last. The keys
``edges`` and ``node`` are repeated::

    {"rules":[1,"[X] ||| haus ||| house",2,"[X] ||| das [X,1] ||| the [1]"],
     "features":["PhraseModel_0","LanguageModel"],
     "edges":[{"tail":[],"spans":[1,2,-1,-1],"feats":[0,-0.5],"rule":1}],
     "node":{"in_edges":[0],"cat":"X"},
     "edges":[{"tail":[0],"spans":[0,2,-1,-1],"feats":[1,-2.25],"rule":2}],
     "node":{"in_edges":[1],"cat":"X"}}

An edge can contain the rule itself, and can refer to a feature by its name. The target of an edge
is the target side of its rule, in which ``[2]`` or ``[X,2]`` is the second tail.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

import numpy as np

from formats.errors import FormatError, quote
from formats.graphs.any_graph import GraphFormat
from formats.graphs.hypergraph import TAIL, HypergraphFile
from formats.graphs.loose_edges import LooseEdges, sort_edges
from formats.text import read_bytes

_SLOT = re.compile(r"\[(?:[^\s\[\],]+,)?([1-9][0-9]?)\]")
_MOST = 2**31
_LARGEST = float(np.finfo(np.float64).max)


def read_cdec_forest(path: str | PathLike[str]) -> HypergraphFile:
    """Read the forest of one sentence, plain or compressed.

    Raises:
        FormatError: the file is not JSON or not a forest; an edge has no rule, its tails do not
            match its rule or are not earlier nodes, or it leads to no node or to two; a value is
            not a finite number; or no derivation reaches the goal.
    """
    forest = _Forest(fspath(path))
    text = read_bytes(path).decode("utf-8", "surrogateescape")
    try:
        content = json.loads(text, object_pairs_hook=_Pairs, parse_constant=_reject_constant)
    except RecursionError:
        raise forest.error(
            "JSON brackets are nested too deeply", "Check that this is a cdec forest"
        ) from None
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise FormatError(
            f"not valid JSON: {error}",
            path=forest.path,
            line=line,
            remedy="Check that the file is complete",
        ) from None
    if not isinstance(content, _Pairs):
        raise forest.error("not a cdec forest", 'Expected {"rules": ..., "edges": ...}')
    for key, value in content.items:
        forest.add(key, value)
    return forest.to_hypergraph()


class _Pairs:
    """A JSON object with possibly repeated keys."""

    def __init__(self, items: list[tuple[str, Any]]) -> None:
        self.items = items


def _reject_constant(text: str) -> None:
    raise ValueError(f"{text} is not a finite number")


@dataclass
class _Forest:
    """The part of a forest read so far."""

    path: str
    rules: dict[int, str] = field(default_factory=dict)
    features: list[str] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    words: dict[bytes, int] = field(default_factory=dict)
    parsed: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    heads: list[int] = field(default_factory=list)
    tail_offsets: list[int] = field(default_factory=lambda: [0])
    tails: list[int] = field(default_factory=list)
    target_offsets: list[int] = field(default_factory=lambda: [0])
    targets: list[int] = field(default_factory=list)
    indptr: list[int] = field(default_factory=lambda: [0])
    indices: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    covered: list[int] = field(default_factory=list)

    def error(self, message: str, remedy: str = "Check that the file is complete") -> FormatError:
        return FormatError(message, path=self.path, remedy=remedy)

    def add(self, key: str, value: Any) -> None:
        """Add a part of the forest."""
        if key == "rules":
            numbers, rules = self.check_list(value, key)[0::2], self.check_list(value, key)[1::2]
            if len(numbers) != len(rules) or not all(isinstance(rule, str) for rule in rules):
                raise self.error("'rules' does not alternate between numbers and strings")
            self.rules.update(zip(map(self.check_integer, numbers), rules, strict=True))
        elif key == "features":
            self.features += [self.check_string(name) for name in self.check_list(value, key)]
        elif key == "edges":
            for edge in self.check_list(value, key):
                self.add_edge(edge)
        elif key == "node":
            self.add_node(value)
        elif key != "is_sorted":
            raise self.error(
                f"unknown key {_show(key)}", "Known keys: rules, features, edges, node"
            )

    def add_edge(self, value: Any) -> None:
        """Add an edge; its head node comes later."""
        number = len(self.heads)
        fields = self.read_fields(value, f"edge {number}", ("rule", "feats", "tail", "spans"))
        rule = fields.get("rule")
        if not isinstance(rule, str):
            if rule is None or self.check_integer(rule) not in self.rules:
                raise self.error(
                    f"edge {number} has no rule",
                    "Write the forest with its rules: they contain the words",
                )
            rule = self.rules[rule]
        tails = [self.check_integer(tail) for tail in self.check_list(fields.get("tail"), "tail")]
        target, slots = self.parse_target(rule)
        if sorted(slots) != list(range(len(tails))):
            raise self.error(
                f"edge {number} has {len(tails)} tails, which do not match its rule {_show(rule)}"
            )
        if any(tail >= len(self.covered) for tail in tails):
            raise self.error(
                f"edge {number} has a tail node that is not defined before it",
                "Write tail nodes before head nodes",
            )
        self.heads.append(-1)
        self.tails += [tails[slot] for slot in slots]
        self.tail_offsets.append(len(self.tails))
        self.targets += target
        self.target_offsets.append(len(self.targets))
        self.add_features(fields.get("feats"), number)
        spans = self.check_list(fields.get("spans"), "spans")
        width = 0
        if spans:
            begin, end = (self.check_integer(place, least=-1) for place in (*spans, -1)[:2])
            width = max(end - begin, 0) if begin >= 0 else 0
        self.widths.append(width)

    def add_features(self, value: Any, edge: int) -> None:
        """Add the features of an edge: alternating names (or numbers) and values."""
        pairs = self.check_list(value, "feats")
        if len(pairs) % 2:
            raise self.error(f"'feats' of edge {edge} does not alternate between names and values")
        columns = []
        for feature, number in zip(pairs[0::2], pairs[1::2], strict=True):
            if not isinstance(feature, str):
                place = self.check_integer(feature)
                if place >= len(self.features):
                    raise self.error(f"feature number {place} of edge {edge} does not exist")
                feature = self.features[place]
            feature = self.check_string(feature)
            columns.append(self.names.setdefault(feature, len(self.names)))
            is_number = isinstance(number, int | float) and not isinstance(number, bool)
            if not is_number or not abs(number) < _LARGEST:
                raise self.error(
                    f"value of feature {quote(feature)} of edge {edge} is {_show(number)}",
                    "Expected a finite decimal number",
                )
            self.values.append(float(number))
        if len(set(columns)) < len(columns):
            raise self.error(f"duplicate feature in edge {edge}", "Remove one of its values")
        self.indices += columns
        self.indptr.append(len(self.indices))

    def add_node(self, value: Any) -> None:
        """Add a node, the head of some of the edges read so far."""
        node = len(self.covered)
        fields = self.read_fields(value, f"node {node}", ("cat", "in_edges", "node_hash"))
        edges = [
            self.check_integer(edge) for edge in self.check_list(fields.get("in_edges"), "in_edges")
        ]
        for edge in edges:
            if edge >= len(self.heads) or self.heads[edge] >= 0:
                raise self.error(f"edge {edge} of node {node} is missing or leads to two nodes")
            self.heads[edge] = node
        self.covered.append(self.widths[edges[0]] if edges else 0)

    def parse_target(self, rule: str) -> tuple[list[int], list[int]]:
        """Return the target side of a rule: words and ``TAIL``, and the tail indices."""
        known = self.parsed.get(rule)
        if known is not None:
            return known
        sides = rule.split("|||")
        if len(sides) < 3:
            raise self.error(f"{_show(rule)} is not a rule", "Expected [X] ||| source ||| target")
        target: list[int] = []
        slots: list[int] = []
        for word in filter(None, sides[2].split(" ")):
            slot = _SLOT.fullmatch(word)
            if slot:
                target.append(TAIL)
                slots.append(int(slot[1]) - 1)
            else:
                target.append(self.words.setdefault(self.encode(word), len(self.words)))
        self.parsed[rule] = target, slots
        return target, slots

    def to_hypergraph(self) -> HypergraphFile:
        """Return the forest as arrays; the last node is the goal."""
        if not self.covered:
            raise self.error(
                "the forest has no node", "cdec found no translation, or the file is incomplete"
            )
        if -1 in self.heads:
            raise self.error(f"edge {self.heads.index(-1)} leads to no node")
        edges = LooseEdges(
            heads=np.array(self.heads, dtype=np.int64),
            tail_offsets=np.array(self.tail_offsets, dtype=np.int64),
            tails=np.array(self.tails, dtype=np.int64),
            target_offsets=np.array(self.target_offsets, dtype=np.int64),
            targets=np.array(self.targets, dtype=np.int32),
            feature_indptr=np.array(self.indptr, dtype=np.int64),
            feature_indices=np.array(self.indices, dtype=np.int32),
            feature_values=np.array(self.values, dtype=np.float64),
            covered=np.array(self.covered, dtype=np.int32),
        )
        goal = len(self.covered) - 1
        return sort_edges(self.path, tuple(self.names), tuple(self.words), edges, goal)

    def read_fields(self, value: Any, what: str, known: tuple[str, ...]) -> dict[str, Any]:
        """Return the members of an object; check for repeated keys."""
        if not isinstance(value, _Pairs):
            raise self.error(f"{what} is not a JSON object")
        fields = dict(value.items)
        if len(fields) < len(value.items) or not fields.keys() <= set(known):
            raise self.error(
                f"{what} has unknown or duplicate keys {[key for key, _ in value.items][:9]}",
                f"Known keys: {', '.join(known)}",
            )
        return fields

    def check_list(self, value: Any, what: str) -> list[Any]:
        """Return a list; ``null`` is an empty one."""
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(f"{what!r} is not a list")
        return value

    def check_integer(self, value: Any, least: int = 0) -> int:
        if type(value) is not int or not least <= value < _MOST:
            raise self.error(f"{_show(value)} is not an integer from {least} to {_MOST - 1}")
        return value

    def check_string(self, value: Any) -> str:
        """Check and return a string that can be encoded."""
        if not isinstance(value, str):
            raise self.error(f"{_show(value)} is not a feature name")
        return self.encode(value).decode("utf-8", "surrogateescape")

    def encode(self, text: str) -> bytes:
        """Return the bytes of a string in the file."""
        try:
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise self.error(
                f"{text!a} is not valid Unicode", "Remove its lone surrogate"
            ) from None


def _show(value: Any) -> str:
    return quote(str(value)[:80].encode("utf-8", "surrogatepass"))


CDEC_JSON = GraphFormat(
    "cdec-json",
    "cdec's --forest_output until October 2014",
    re.compile(rb"\s*\{").match,
    read_cdec_forest,
)
