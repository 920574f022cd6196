"""A store whose records are damaged behind its back, and everything that reads it.

An input is a list of changes, ``[database, key, value or None]``, as the store packs values. They
are made to a small store with lists, search graphs and an iteration that grows; then all of it is
read, searched and learned from, and they are undone. Checksums are made to fit in half of the
inputs, so that nothing but the content is hostile.
"""

from __future__ import annotations

import gc
import tempfile
import traceback
import zlib
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import lmdb
import numpy as np

from formats.graphs.hypergraph import TAIL, infer_groups
from formats.graphs.hypergraph_reader import read_hypergraph
from mosesplug.errors import DataError
from mosesplug.forest.viterbi import viterbi
from mosesplug.hypergraph import Hypergraph
from mosesplug.results.views.maintenance import verify_store
from mosesplug.store import NBestStore, reading
from mosesplug.store.encoding import decode_value, encode_value, read_header
from mosesplug.store.ingest import Ingest
from mosesplug.store.state import CHECKSUMS, NAMES, StoreState
from mosesplug.tuning_set import TuningSet
from tests.long_running.mutations import Chance, mutated
from tests.store.toys import Hypothesis, ToyMetric, make_list

__all__ = ["NoChanges", "begin", "made", "read"]

_GRAPH = Path(__file__).parents[1] / "data/valid/search_graph/tiny.hypergraph"
_NAMES = ("meta", "iterations", "kbest", "statistics", "forest")
_SENTENCES = 3
_METRIC = ToyMetric()
_COMMON: dict[str, Any] = {
    "metric": _METRIC,
    "references": _METRIC.prepare(((b"a b", b"c", b"d e"),)),
    "n_sentences": _SENTENCES,
}
_ODD = (
    *(-1, 0, 1, 2, 3, 7, 255, 65535, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 31, (1 << 32) - 1),
    *(1 << 33, 1 << 40, (1 << 63) - 1, -(1 << 63)),
)

Records = dict[tuple[str, bytes], bytes]
Change = tuple[str, bytes, bytes | None]


class NoChanges(Exception):
    """A file that is no list of changes."""


def _lists(iteration: int, groups: tuple[tuple[str, int], ...]) -> list[Hypothesis]:
    width = sum(each for _, each in groups)
    names = ("s_a", f"s_{iteration}")
    return [
        Hypothesis(
            sentence,
            b"%s word%d" % (text, iteration * (row % 2)),
            tuple(np.arange(width) + row),
            tuple((name, row + 0.5) for name in names[: 1 + row % 2]),
            -float(row),
            b" 0-0" * row,
        )
        for sentence in range(_SENTENCES)
        for row, text in enumerate((b"a b", b"c", b"d", b"e f g"))
    ]


@cache
def begin() -> tuple[tempfile.TemporaryDirectory[str], Path, Records]:
    """The store's directory, made once a process, by two names, and its records."""
    place = tempfile.TemporaryDirectory(prefix="mosesplug-store-")
    directory = Path(place.name)
    graph = read_hypergraph(_GRAPH)
    groups = infer_groups(graph.names, ())
    with NBestStore.open(directory, writable=True, map_size=1 << 24) as store:
        for number in (1, 2):
            store.add_graphs(number, [(0, graph), (2, graph)], groups=groups)
            found = [make_list(_lists(number, groups), groups)]
            store.add_iteration(number, found, record={"weights": np.ones(2)}, **_COMMON)
            store.record_result(number, {"score": 0.5})
        store.add_graphs(3, [(1, graph)])
        part = make_list(_lists(3, groups)[:4], groups)
        store.add_part(3, [part], progress={"state": np.zeros(3)}, **_COMMON)
    with lmdb.open(str(directory), max_dbs=8) as raw, raw.begin() as transaction:
        records = {
            (name, key): value
            for name in _NAMES
            for key, value in transaction.cursor(raw.open_db(name.encode(), transaction))
        }
    assert not _read_all(directory)  # and have Numba load what it keeps, which is a pickle
    return place, directory, records


def made(chance: Chance) -> bytes:
    """An input."""
    *_, records = begin()
    changes = [change for _ in range(1 + chance.below(2)) for change in _changes(chance, records)]
    if chance.below(2):
        changes += _checksums(records, changes)
    return encode_value([list(change) for change in changes])


def _changes(chance: Chance, records: Records) -> list[Change]:
    keys = [key for key in records if key[0] != "iterations" or key[1][4] != CHECKSUMS]
    # Each database as often as any other, although there are few records in some.
    name = chance.one_of(_NAMES)
    place = chance.one_of([key for key in keys if key[0] == name])
    other = chance.one_of([key for key in keys if key[0] == name])
    value = records[place]
    alike = [records[key] for key in keys if key[0] == name]
    kind = chance.below(8)
    if kind == 0:
        return [(*place, records[other]), (*other, value)]
    if kind == 1:
        return [(*place, None)]
    if kind == 2:
        return [(*place, None), (name, mutated(chance, place[1], (other[1],))[:200] or b"x", value)]
    if kind in (3, 4):
        return [(*place, mutated(chance, value, alike))]
    change = _with_odd_number if name in ("kbest", "forest") else _with_odd_value
    return [(*place, change(chance, value))]


def _with_odd_number(chance: Chance, record: bytes) -> bytes:
    """A record with one number of one of its arrays changed, or of its header."""
    (_, *places), start = read_header(np.frombuffer(record, np.uint8))
    if chance.below(6) == 0:
        header = decode_value(record[4 : 4 + int.from_bytes(record[:4], "little")])
        header[chance.below(len(header))] = abs(chance.one_of(_ODD))
        packed = encode_value(header)
        begun = 4 + len(packed) + -(4 + len(packed)) % 8
        padding = bytes(begun - 4 - len(packed))
        return b"".join([len(packed).to_bytes(4, "little"), packed, padding, record[start:]])
    which = chance.below(len(places) // 2)
    count, at = places[2 * which : 2 * which + 2]
    size = chance.one_of((4, 8))
    if not count:
        return record
    place = start + at + size * chance.below(count)
    number = (chance.one_of(_ODD) % (1 << 8 * size)).to_bytes(size, "little")
    return record[:place] + number + record[place + size :]


def _with_odd_value(chance: Chance, packed: bytes) -> bytes:
    """A value with one of its parts changed."""
    try:
        value = decode_value(packed)
    except ValueError:
        return mutated(chance, packed, (packed,))
    odd = chance.one_of((*_ODD, None, "", "x", 0.5, float("nan"), b"", [], {}, [[]], {"x": []}))
    holders: list[Any] = [value]
    for holder in holders:
        inside = holder.values() if isinstance(holder, dict) else holder
        if isinstance(holder, dict | list):
            holders += [each for each in inside if isinstance(each, dict | list) and each]
    holder = chance.one_of([each for each in holders if isinstance(each, dict | list)] or [None])
    if not holder or chance.below(12) == 0:
        value = odd
    elif chance.below(6) == 0:
        del holder[chance.one_of(list(holder) if isinstance(holder, dict) else range(len(holder)))]
    else:
        holder[chance.one_of(list(holder) if isinstance(holder, dict) else range(len(holder)))] = (
            odd
        )
    try:
        return encode_value(value)
    except (TypeError, ValueError):
        return b"\xc0"


def _checksums(records: Records, changes: list[Change]) -> list[Change]:
    """Checksums that fit what the records are after some changes."""
    after = dict(records)
    for name, key, value in changes:
        if value is None:
            after.pop((name, key), None)
        else:
            after[name, key] = value
    fitting: list[Change] = []
    for (name, key), value in records.items():
        if name != "iterations" or key[4] != CHECKSUMS:
            continue
        area, kind = ("iterations", "kbest", "statistics", "forest")[key[5]], key[6:10]
        numbers = [number for number, _ in np.frombuffer(decode_value(value)[4:], "<u4,<u4")]
        pairs = []
        for number in numbers:
            last = bytes([number]) if area == "iterations" else int(number).to_bytes(4, "big")
            if area == "iterations" and number == NAMES:
                last += kind  # the first column
            place = (area, (kind if area == "statistics" else b"") + key[:4] + last)
            if place in after:
                pairs.append((number, zlib.crc32(after[place])))
        packed = np.array(pairs, "<u4").tobytes()
        sums = zlib.crc32(packed).to_bytes(4, "little") + packed
        fitting.append((name, key, encode_value(sums)))
    meta = {name: zlib.crc32(records_of) for name, records_of in _meta(after).items()}
    return [*fitting, ("meta", b"checksums", encode_value(meta))]


def _meta(records: Records) -> dict[str, bytes]:
    """The values of ``meta`` that have checksums, by name."""
    return {
        key.decode(): value
        for (name, key), value in records.items()
        if name == "meta" and key != b"checksums" and key.isascii()
    }


def read(path: Path) -> None:
    """Make the changes of a file, read everything, and undo them.

    Raises:
        NoChanges: the file has none.
    """
    changes = _decoded(path.read_bytes())
    _, directory, records = begin()
    _apply(directory, changes)
    try:
        _read_all(directory)
    except Exception as error:
        # Arrays in its frames would keep the store open.
        traceback.clear_frames(error.__traceback__)
        gc.collect()
        raise
    finally:
        before = [(name, key, records.get((name, key))) for name, key, _ in changes]
        _apply(directory, before)


def _decoded(text: bytes) -> list[Change]:
    try:
        found = decode_value(text)
    except ValueError as error:
        raise NoChanges(f"no list of changes: {error!r}") from None
    if not isinstance(found, list):
        raise NoChanges("no list of changes")
    for change in found:
        if not isinstance(change, list) or len(change) != 3:
            raise NoChanges("no change")
        name, key, value = change
        is_key = isinstance(key, bytes) and 0 < len(key) < 500
        if name not in _NAMES or not is_key or not isinstance(value, bytes | None):
            raise NoChanges("no change")
    return [(name, key, value) for name, key, value in found]


def _apply(directory: Path, changes: list[Change]) -> None:
    with (
        lmdb.open(str(directory), max_dbs=8, map_size=1 << 24, sync=False) as raw,
        raw.begin(write=True) as transaction,
    ):
        for name, key, value in changes:
            database = raw.open_db(name.encode(), transaction)
            if value is None:
                transaction.delete(key, db=database)
            else:
                transaction.put(key, value, db=database)


def _read_all(directory: Path) -> list[str]:
    """Read everything possible from a store; return the errors."""
    told = _refusals([lambda: list(verify_store(directory))])
    try:
        store = NBestStore.open(directory)
    except DataError as error:
        return [*told, str(error)]
    with store:
        actions: list[Callable[[], object]] = [
            lambda: _check_set(store.tuning_set()),
            lambda: _check_set(store.batch([2, 0], 2)),
            lambda: _check_set(store.merge_batches().batch([0, 1, 0])),
            lambda: _check_set(store.iteration_set(2).tuning_set),
            lambda: _check_set(store.open_batch([0, 1])),
            store.open_iteration,
            lambda: _ingest(store),
        ]
        for sentence in range(_SENTENCES):
            actions += [
                partial(_graphs, store, sentence),
                partial(store.iteration_list, 2, sentence),
                partial(store.hypotheses, sentence),
            ]
        return told + _refusals(actions)


def _refusals(actions: Iterable[Callable[[], object]]) -> list[str]:
    told = []
    for action in actions:
        try:
            action()
        except DataError as error:
            told.append(str(error))
            assert told[-1]
            assert "\n" not in told[-1], told[-1]
    return told


def _check_set(found: TuningSet) -> None:
    """What kernels rely on."""
    rows = found.n_hyps
    assert (np.diff(found.offsets) >= 0).all()
    assert found.dense.shape == (rows, found.space.n_dense)
    assert len(found.stats) == len(found.lengths) == rows
    if found.sparse is not None:
        assert len(found.sparse.indptr) == rows + 1
        assert found.sparse.indptr[0] == 0
        assert found.sparse.indptr[-1] == len(found.sparse.data) == len(found.sparse.indices)
        assert (np.diff(found.sparse.indptr) >= 0).all()
        assert ((found.sparse.indices >= 0) & (found.sparse.indices < found.space.n_sparse)).all()


def _graphs(store: NBestStore, sentence: int) -> None:
    with store.graphs(unfinished=True) as graphs:
        for graph in graphs.of_sentence(sentence) if sentence < graphs.n_sentences else []:
            _check_graph(graph, len(graphs.space))
            viterbi(graph, graph.edge_scores(np.zeros(len(graphs.space))))


def _check_graph(graph: Hypergraph, n_features: int) -> None:
    """What kernels rely on, in the plainest words."""
    nodes, edges = graph.n_nodes, graph.n_edges
    for offsets, count, end in (
        (graph.edge_offsets, nodes, edges),
        (graph.tail_offsets, edges, len(graph.tails)),
        (graph.target_offsets, edges, len(graph.targets)),
        (graph.feature_indptr, edges, len(graph.feature_values)),
    ):
        assert len(offsets) == count + 1
        assert offsets[0] == 0
        assert offsets[-1] == end
        assert (np.diff(offsets) >= 0).all()
    for node in range(nodes):
        for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
            tails = graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]]
            assert ((tails >= 0) & (tails < node)).all()
            assert (graph.target(edge) == TAIL).sum() == len(tails)
    assert ((graph.targets >= TAIL) & (graph.targets < len(graph.words))).all()
    assert ((graph.feature_indices >= 0) & (graph.feature_indices < n_features)).all()
    assert len(graph.feature_indices) == len(graph.feature_values)
    assert np.isfinite(graph.feature_values).all()


def _ingest(store: NBestStore) -> None:
    """Look hypotheses up in the lists that are stored, as an iteration that comes next does."""
    with store._reading() as (reader, state):
        assert isinstance(state, StoreState)
        if not state.iterations:
            return
        groups = state.groups or ()
        ingest = Ingest(
            iteration=len(state.iterations) + 1,
            n_sentences=_SENTENCES,
            metric=_COMMON["metric"],
            references=_COMMON["references"],
            kind=reading.statistics.find_newest_kind(state, store._environment),
            groups=state.groups,
            sparse={name: column for column, name in enumerate(state.sparse)},
            path="store",
        )
        if sum(width for _, width in groups) < 1000 and ingest.kind.width == 2:
            lines = _lists(1, groups) if not state.open_lists else _lists(1, groups)[4:]
            block = make_list(lines, groups)
            ingest.check(block)
            ingest.add(block, reader)
