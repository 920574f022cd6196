"""Export the lists of a store as lists, rows, extractor files or arrays."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from formats.extractor.data import SparseColumns, write_features, write_scores
from formats.nbest.entry import NBestEntry, format_entry
from formats.nbest.files import replace_id
from formats.text import atomic_write, write_atomic
from mosesplug.errors import UsageError
from mosesplug.escapes import mark_invalid_utf8
from mosesplug.results.views.run import StoredRun
from mosesplug.results.views.sentence import name_sparse_values
from mosesplug.tuning_set import TuningSet


def export_lists(
    run: StoredRun, path: Path, iteration: int | None, sentences: Sequence[int], digits: int
) -> Iterator[int]:
    """Write n-best lists as Moses does, and yield the number of sentences written.

    The file appears when the iterator ends.

    Args:
        path: the output; a path that ends in ``.gz`` is compressed.
        iteration: the iteration, whose lists have the decoder's scores; None for merged lists,
            with the model scores of the run's result.
        sentences: the sentences, ascending numbers; ids that are texts are written.
        digits: significant digits; 9 keep every float32.
    """
    named = _must_name_values(run)
    ids = run.store.sentence_ids
    with atomic_write(path, compress="gz" if path.suffix == ".gz" else None) as file:
        for done, sentence in enumerate(sentences, start=1):
            for entry in _read_entries(run, iteration, sentence):
                line = format_entry(entry, digits=digits, named=named)
                file.write(replace_id(line, ids[sentence]) if sentence < len(ids) else line)
            yield done


def export_rows(
    run: StoredRun,
    path: Path,
    layout: str,
    iteration: int | None,
    sentences: Sequence[int],
    digits: int,
) -> Iterator[int]:
    """Write one hypothesis a line; yield the number of sentences written.

    Args:
        path: the output; a path that ends in ``.gz`` is compressed.
        layout: ``jsonl``, with dense and sparse features and the model score; or ``tsv`` or
            ``csv``, with dense features. ``optimize`` reads all of them.
        iteration, sentences, digits: as for ``export_lists``.

    Raises:
        UsageError: the layout cannot hold the lists.
    """
    names = [str(name) for name in run.space.labels[: run.space.n_dense]]
    if layout != "jsonl" and run.space.n_sparse:
        raise UsageError(
            f"{layout} has no sparse features, of which the run has {run.space.n_sparse}:"
            " use jsonl or parquet"
        )
    ids = run.store.sentence_ids
    with atomic_write(path, compress="gz" if path.suffix == ".gz" else None) as file:
        if layout != "jsonl":
            file.write(_join_cells(["id", "hyp", *names], layout))
        for done, sentence in enumerate(sentences, start=1):
            name: str | int = ids[sentence] if sentence < len(ids) else sentence
            for entry in _read_entries(run, iteration, sentence):
                text = entry.text.decode("utf-8", "surrogateescape")
                values = [f"{value:.{digits}g}" for _, group in entry.dense for value in group]
                if layout == "jsonl":
                    file.write(_format_json(name, text, names, values, entry, digits))
                else:
                    file.write(_join_cells([str(name), text, *values], layout))
            yield done


def _format_json(
    name: str | int,
    text: str,
    names: Sequence[str],
    values: Sequence[str],
    entry: NBestEntry,
    digits: int,
) -> bytes:
    scores = dict(zip(names, map(float, values), strict=True))
    scores |= {feature: float(f"{value:.{digits}g}") for feature, value in entry.sparse}
    record: dict[str, Any] = {"id": name, "hyp": text}
    if math.isfinite(entry.score):
        record["score"] = float(f"{entry.score:.{digits}g}")
    line = json.dumps({**record, "scores": scores}, ensure_ascii=False)
    return mark_invalid_utf8(line + "\n").encode()


def _join_cells(cells: Sequence[str], layout: str) -> bytes:
    if layout == "csv":
        file = io.StringIO()
        csv.writer(file, lineterminator="\n").writerow(cells)
        return file.getvalue().encode("utf-8", "surrogateescape")
    if any("\t" in cell for cell in cells):
        raise UsageError(f"a tab is in {cells[1]!r}, which tsv cannot hold: use csv or jsonl")
    return ("\t".join(cells) + "\n").encode("utf-8", "surrogateescape")


def _must_name_values(run: StoredRun) -> bool:
    """Return whether Moses' format confuses these lists' dense and sparse features.

    It tells them apart by underscores, which lists of decoders that name every value may have in
    dense features, or lack in sparse ones. Runs with search graphs are Moses' own.
    """
    if any(record.n_graphs for record in run.records):
        return False
    dense_like_sparse = any("_" in name for name, _ in run.space.groups)
    return dense_like_sparse or any("_" not in name for name in run.space.sparse)


def _read_entries(run: StoredRun, iteration: int | None, sentence: int) -> Iterator[NBestEntry]:
    if iteration is not None:
        listed = run.store.iteration_list(iteration, sentence)
        rows: Any = listed
        texts, scores, extras = listed.texts, listed.scores, listed.extras
        order = range(len(texts))
    else:
        rows = run.store.batch([sentence])
        texts = run.store.hypotheses(sentence)
        scores = rows.model_scores(run.weights.vector(run.space))
        extras = (b"",) * len(texts)
        order = np.argsort(-scores, kind="stable").tolist()
    for row in order:
        yield NBestEntry(
            sentence_id=sentence,
            text=texts[row],
            dense=_group_values(run, rows.dense[row].tolist()),
            sparse=tuple(name_sparse_values(run, rows.sparse, row).items()),
            score=float(scores[row]),
            extra=extras[row],
        )


def _group_values(run: StoredRun, values: list[float]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    groups, start = [], 0
    for name, width in run.space.groups:
        groups.append((name, tuple(values[start : start + width])))
        start += width
    return tuple(groups)


def export_extractor(lists: TuningSet, metric: str, features: Path, scores: Path) -> None:
    """Write lists as Moses' ``extractor`` does, as text.

    The files are ``features.dat`` and ``scores.dat``.
    """
    sparse = None
    if lists.sparse is not None and len(lists.sparse.data):
        rows = lists.sparse
        sparse = SparseColumns(lists.space.sparse, rows.indptr, rows.indices, rows.data)
    names = lists.space.names[: lists.space.n_dense]
    write_features(features, names, lists.sentence_ids, lists.offsets, lists.dense, sparse)
    write_scores(scores, metric, lists.sentence_ids, lists.offsets, lists.stats)


def export_arrays(lists: TuningSet, signature: str, path: Path, ids: Sequence[str] = ()) -> None:
    """Write the arrays of lists as NPZ, which ``np.load`` reads without pickle.

    ``names`` are the columns, dense ones first. The sparse values are ``sparse_indptr``,
    ``sparse_indices`` (counted from 0 for the first sparse column) and ``sparse_data``. ``ids``
    are the ids of the sentences, if they are texts.
    """
    arrays: dict[str, Any] = {
        "sentence_ids": lists.sentence_ids,
        "offsets": lists.offsets,
        "dense": lists.dense,
        "statistics": lists.stats,
        "lengths": lists.lengths,
        "names": np.array(lists.space.names, dtype=np.str_),
        "signature": np.array(signature),
    }
    if ids:
        arrays["ids"] = np.array([ids[n] for n in lists.sentence_ids.tolist()], dtype=np.str_)
    if lists.sparse is not None:
        arrays["sparse_indptr"] = lists.sparse.indptr
        arrays["sparse_indices"] = lists.sparse.indices
        arrays["sparse_data"] = lists.sparse.data
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomic(path, buffer.getvalue())
