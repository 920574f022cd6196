"""Read search graphs in any supported format, detected by their content.

::

    hypergraph      moses -output-search-graph-hypergraph, and the bundled decoder
    search-graph    moses -output-search-graph and -output-search-graph-extended
    slf             moses -output-search-graph-slf, and HTK lattices of others
    cdec-json       cdec --forest_output, until October 2014
    target-graph    cdec --show_target_graph

A ``search-graph`` file has the graphs of all sentences; the other kinds have one per file. The
readers of ``slf`` and ``cdec-json`` are bundled plug-ins (``formats.extras``); other packages can
register a ``GraphFormat`` in the same way.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from formats.errors import FormatError
from formats.graphs.hypergraph import HypergraphFile, list_hypergraph_files
from formats.graphs.hypergraph_reader import read_hypergraph, read_target_graph
from formats.graphs.search_graph import read_search_graphs
from formats.plugins import find_plugin, list_plugins
from formats.text import open_text, read_bytes

GraphKind = str
"""``hypergraph``, ``search-graph``, ``target-graph``, or the name of a plug-in, as ``slf``."""

PLUGINS = "mosesplug.graphs"
"""The group of entry points by which packages add formats of graphs; their signs come last."""

Scan = Callable[[str, bytes], HypergraphFile | None]
"""A fast parser of hypergraphs, from path and text; None for any text that it does not accept."""


@dataclass(frozen=True)
class GraphFormat:
    """A format of files with one graph each.

    Attributes:
        name: its name, as ``slf``.
        summary: what writes it, in a few words.
        recognizes: returns whether a file that begins like this has the format.
    """

    name: str
    summary: str
    recognizes: Callable[[bytes], object]
    read: Callable[[str | PathLike[str]], HypergraphFile]


_READERS: Mapping[GraphKind, Callable[[str | PathLike[str]], HypergraphFile]] = {
    "hypergraph": read_hypergraph,
    "target-graph": read_target_graph,
}
_SIGNS: tuple[tuple[GraphKind, re.Pattern[bytes]], ...] = (
    ("hypergraph", re.compile(rb"# target \|\|\| features \|\|\| source-covered")),
    (
        "target-graph",
        re.compile(rb"(?:#[^\n]*\n)*[0-9]+ +[0-9]+ *\r?(?:\n|$)|# target \|\|\| feat"),
    ),
    ("search-graph", re.compile(rb"[0-9]+ hyp=")),
)
_CHART = re.compile(rb"[0-9]+ [0-9]+(?:->[0-9]+)? [^\n]*\[total=")
_BINARY = b"serialization::archive"
_BEGINNING = 1 << 16
_NUMBERED = re.compile(r"([0-9]{1,9})(?:\..*)?")


def read_graphs(
    path: str | PathLike[str],
    kind: GraphKind = "auto",
    *,
    core_names: Sequence[str] | None = None,
    scan: Scan | None = None,
) -> Iterator[tuple[int, HypergraphFile]]:
    """Yield sentence ids with their graphs.

    Args:
        path: a file, or a directory with one file per sentence named by its id (``0``, ``1.gz``,
            ``2.json.gz``; see ``list_hypergraph_files``), in ascending order. A single file with
            another name is sentence 0.
        kind: the kind of all files; ``auto`` detects it.
        core_names: names of the dense features of an extended search graph, which has none
            (``formats.graphs.search_graph.core_names``).
        scan: see ``read_graph``.

    Raises:
        FormatError: a file has an unknown format or is malformed; or a directory has no graphs,
            other files, or two graphs of one sentence.
    """
    if Path(path).is_dir():
        for number, file in list_hypergraph_files(path).items():
            yield number, read_graph(file, kind, scan=scan)
    elif (detect_graph_kind(path) if kind == "auto" else kind) == "search-graph":
        yield from read_search_graphs(path, core_names)
    else:
        match = _NUMBERED.fullmatch(Path(path).name)
        yield int(match[1]) if match else 0, read_graph(path, kind, scan=scan)


def read_graph(
    path: str | PathLike[str], kind: GraphKind = "auto", *, scan: Scan | None = None
) -> HypergraphFile:
    """Read the graph in a file with one graph.

    Args:
        kind: its kind; ``auto`` detects it.
        scan: tried before the readers, which explain errors.

    Raises:
        FormatError: as ``read_graphs``; or the file holds the graphs of many sentences.
        ValueError: there is no such kind, or the plug-in cannot be used.
    """
    if scan is not None and kind in ("auto", "hypergraph"):
        graph = scan(fspath(path), read_bytes(path))
        if graph is not None:
            return graph
    detected = detect_graph_kind(path) if kind == "auto" else kind
    if detected == "search-graph":
        raise FormatError(
            "the file has the search graphs of several sentences, not of one",
            path=fspath(path),
            remedy="Give the file, not its directory",
        )
    read = _READERS.get(detected)
    return find_graph_format(detected).read(path) if read is None else read(path)


def find_graph_format(name: str) -> GraphFormat:
    """Return the format that a plug-in registers.

    Raises:
        ValueError: there is no such format, or the plug-in cannot be used.
    """
    if (plugin := find_plugin(PLUGINS, name, GraphFormat)) is not None:
        return plugin
    known = [kind for kind, _ in _SIGNS] + [entry.name for entry in list_plugins(PLUGINS)]
    raise ValueError(f"unknown search graph format {name!r}; known: {', '.join(known)}")


def detect_graph_kind(path: str | PathLike[str]) -> GraphKind:
    """Detect the kind of a file.

    Raises:
        FormatError: the file cannot be read, or its format is unknown.
    """
    with open_text(path) as file:
        beginning = file.read(_BEGINNING)
    for kind, sign in _SIGNS:
        if sign.match(beginning):
            return kind
    for entry in list_plugins(PLUGINS):
        # A plug-in that does not work must not hide that the file may be another one's.
        with contextlib.suppress(Exception):
            if entry.load(GraphFormat).recognizes(beginning):
                return entry.name
    message, remedy = "unknown search graph format", "Check that the file is complete"
    if _CHART.match(beginning):
        message = "the search graph format of Moses' chart decoder is not supported"
        remedy = "Write it with -output-search-graph-hypergraph"
    elif _BINARY in beginning[:64]:
        message = "cdec's binary forest format is not supported"
        remedy = "Use --show_target_graph, or a cdec before October 2014, which writes JSON"
    raise FormatError(message, path=fspath(path), line=1, remedy=remedy)
