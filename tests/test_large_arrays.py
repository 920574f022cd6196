"""Test that arrays in files are those of the heap, and leave no file."""

from __future__ import annotations

import mmap
import resource
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug import large_arrays
from mosesplug.large_arrays import allocate, concatenate, take_rows
from mosesplug.metrics import metric
from mosesplug.optimizers import Problem, algorithm
from mosesplug.store import NBestStore
from mosesplug.tuning_set import TuningSet
from tests.faults.test_resources import soft_limit
from tests.store.toys import Hypothesis, make_list

IN_FILES, ON_HEAP = 1, 1 << 40


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files, empty."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def is_in_file(array: np.ndarray[Any, Any]) -> bool:
    return isinstance(array.base, mmap.mmap)  # type: ignore[unreachable, unused-ignore]


@pytest.mark.parametrize("shape", [(7,), (5, 3), (4, 0), (0,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_arrays_are_alike(shape: tuple[int, ...], dtype: type, directory: Path) -> None:
    one, other = (allocate(shape, dtype, limit) for limit in (IN_FILES, ON_HEAP))
    assert is_in_file(one) == (one.size > 0)
    assert not is_in_file(other)
    assert (one.shape, one.dtype, one.strides) == (other.shape, other.dtype, other.strides)
    assert one.flags.c_contiguous
    assert one.flags.aligned
    one[...] = other[...] = 3
    np.testing.assert_array_equal(one, other)
    assert not list(directory.iterdir())


def test_rows() -> None:
    rng = np.random.default_rng(0)
    pieces = [rng.random((n, 3)).astype(np.float32) for n in (4, 0, 9)]
    whole = concatenate(pieces, np.float32, IN_FILES)
    assert is_in_file(whole)
    np.testing.assert_array_equal(whole, np.concatenate(pieces))
    rows = rng.integers(0, 13, 20)
    taken = take_rows(whole, rows, IN_FILES)
    assert is_in_file(taken)
    np.testing.assert_array_equal(taken, whole[rows])
    np.testing.assert_array_equal(take_rows(whole, rows, ON_HEAP), whole[rows])
    for bad in (-14, 13):
        for limit in (IN_FILES, ON_HEAP):
            with pytest.raises(IndexError):
                take_rows(whole, np.array([0, bad]), limit)


def test_a_full_disk_leaves_the_heap(directory: Path) -> None:
    with soft_limit(resource.RLIMIT_FSIZE, 1 << 12):
        small, large = (allocate((n,), np.float64, IN_FILES) for n in (8, 1 << 12))
    assert is_in_file(small)
    assert not is_in_file(large)
    large[:] = 1.0
    assert not list(directory.iterdir())


def test_too_many_open_files_leave_the_heap(directory: Path) -> None:
    with soft_limit(resource.RLIMIT_NOFILE, 3):
        array = allocate((8,), np.float64, IN_FILES)
    assert not is_in_file(array)
    assert not list(directory.iterdir())


def tuned(path: Path) -> tuple[TuningSet, list[bytes]]:
    """Merge two lists of a store and tune on half of them: the arrays, and all weights."""
    rng = np.random.default_rng(3)
    texts = [b" ".join(b"w%d" % word for word in rng.integers(0, 5, 4)) for _ in range(240)]
    dense = rng.standard_normal((240, 3)).tolist()
    bleu = metric("BLEU")
    references = bleu.prepare([[b"w1 w2 w3 w4"] * 12])
    with NBestStore.open(path, writable=True) as store:
        for part in range(2):
            lines = [
                Hypothesis(i, texts[k], tuple(dense[k]))
                for i in range(12)
                for k in range(20 * i + 5 * part, 20 * i + 5 * part + 15)
            ]
            store.add_iteration(
                part + 1, [make_list(lines)], metric=bleu, references=references,
                n_sentences=12, record={},
            )  # fmt: skip
        lists = [store.tuning_set(), store.tuning_set([2])]
    half = lists[0].take_sentences(np.arange(0, 12, 2))
    weights = []
    for name in ("mert", "nelder-mead", "mira"):
        tuner = algorithm(name)
        for each in (*lists, half):
            optimizer = tuner.bind(tuner.options())
            found = optimizer.optimize(Problem(each, bleu), np.ones(3), np.random.default_rng(1))
            weights.append(found.weights.tobytes())
    return half, weights


def test_the_weights_are_the_same(
    tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_heap, expected = tuned(tmp_path / "heap")
    monkeypatch.setattr(large_arrays, "HEAP_BYTES", IN_FILES)
    in_files, found = tuned(tmp_path / "files")
    assert found == expected
    for name in ("dense", "stats", "lengths"):
        assert is_in_file(getattr(in_files, name)), name
        assert not is_in_file(getattr(on_heap, name)), name
        assert getattr(in_files, name).dtype == getattr(on_heap, name).dtype
    assert not list(directory.iterdir())
