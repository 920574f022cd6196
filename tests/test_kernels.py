"""The decorator of kernels: what they load, how they are pickled, what forks inherit."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from numba.core.compiler_lock import global_compiler_lock
from numpy.typing import NDArray

from mosesplug import kernels
from tests.waiting import LIMIT


def test_kernels_need_no_numba_until_they_are_called() -> None:
    program = "import sys, mosesplug.metrics.words; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_kernels_need_no_linear_algebra_and_others_find_it() -> None:
    program = """
import sys
from mosesplug.kernels import load_compiler
load_compiler()
assert "scipy.linalg" not in sys.modules
import numba, numpy
assert numba.njit(lambda a: numpy.dot(a, a))(numpy.eye(2)).tolist() == [[1, 0], [0, 1]]
assert "scipy.linalg" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@kernels.inlined_kernel
def _add_one(number: int) -> int:
    return number + 1


@kernels.kernel
def _add_three(number: int) -> int:
    return _add_one(_add_one(_add_one(number)))


def test_inlined_kernels_are_part_of_their_callers() -> None:
    assert _add_three(4) == 7
    assert _add_one.dispatcher.signatures == []  # type: ignore[attr-defined]
    assert _add_one(4) == 5


@kernels.kernel
def _double(number: int) -> int:
    return 2 * number


@kernels.kernel
def _sum_doubles(numbers: NDArray[np.int32]) -> int:
    return _double(3) + _double(len(numbers)) + _double(numbers[0])


def test_kernels_are_compiled_once_for_integers_of_other_kernels() -> None:
    assert _sum_doubles(np.array([2**31 - 1], dtype=np.int32)) == 6 + 2 + 2**32 - 2
    assert len(_double.dispatcher.signatures) == 1  # type: ignore[attr-defined]


@kernels.kernel
def _assign(source: NDArray[np.int64], target: NDArray[np.int64]) -> None:
    target[1:] = source


def test_slices_are_assigned_from_arrays_of_their_size() -> None:
    target = np.zeros(4, dtype=np.int64)
    _assign(np.arange(3), target)
    assert target.tolist() == [0, 0, 1, 2]
    with pytest.raises(ValueError, match="cannot assign slice from input of different size"):
        _assign(np.arange(2), target)


def test_kernels_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(kernels._nothing)) is kernels._nothing


def test_a_fork_inherits_no_lock_of_the_compiler() -> None:
    kernels.load_compiler()
    compiling = threading.Event()

    def compile_slowly() -> None:
        with global_compiler_lock, kernels._making:
            compiling.set()
            time.sleep(0.5)

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    assert compiling.wait(LIMIT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        child = os.fork()
    if not child:
        free = kernels._making.acquire(timeout=1) and global_compiler_lock._lock.acquire(timeout=1)
        os._exit(0 if free else 3)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_read_only_views_share_memory_where_they_can() -> None:
    array = np.arange(6)
    view = kernels.read_only(array, np.int64)
    assert np.shares_memory(array, view)
    assert not view.flags.writeable
    assert array.flags.writeable
    assert not np.shares_memory(array, kernels.read_only(array[::2], np.int64))
    assert kernels.read_only(array, np.float64).tolist() == [0, 1, 2, 3, 4, 5]
