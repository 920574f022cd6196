"""Records and plain data, to bytes and back."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.store.encoding import decode_value, encode_record, encode_value
from mosesplug.store.records import KbestRecord

ARRAYS = (
    np.array([5, 2**64 - 1], dtype=np.uint64),
    np.arange(6, dtype=np.float32),
    np.array([1, 2], dtype=np.int32),
    np.array([0, 1, 4], dtype=np.uint32),
    np.array([0, 0, 1], dtype=np.uint32),
    np.array([70000], dtype=np.int32),
    np.array([0.5], dtype=np.float32),
    np.array([1, 3, 1], dtype=np.int32),
    np.array([0, 7, 1], dtype=np.int32),
    np.array([-1.5, -2.5, -3.5]),
    np.array([0, 0, 3, 3], dtype=np.uint32),
    np.frombuffer(b"a\x00\xff ", np.uint8),
    np.frombuffer(b" 0-", np.uint8),
)


@pytest.mark.parametrize("shift", range(9))
def test_a_record_is_read_wherever_it_lies(shift: int) -> None:
    data = encode_record(3, ARRAYS)
    assert len(data) % 8 == 0
    place = np.zeros(len(data) + 16, dtype=np.uint8)
    place[shift : shift + len(data)] = np.frombuffer(data, np.uint8)
    place.flags.writeable = False
    record = KbestRecord(place[shift : shift + len(data)])
    assert (record.n_new, record.n_list, record.n_dense) == (2, 3, 3)
    found = (
        record.hashes, record.flat_dense, record.lengths, record.text_offsets,
        record.sparse_indptr, record.sparse_indices, record.sparse_data, record.home_iterations,
        record.home_rows, record.scores, record.extra_offsets, record.text, record.extras,
    )  # fmt: skip
    for array, truth in zip(found, ARRAYS, strict=True):
        assert array.dtype == truth.dtype
        assert array.tobytes() == truth.tobytes()
        assert array.flags.aligned
        assert not array.flags.writeable
        # Where the record is aligned, its arrays are the memory that was given.
        assert np.shares_memory(array, place) == (shift % 8 == place.ctypes.data % 8)
    assert record.dense.shape == (2, 3)
    assert [record.hypothesis(row) for row in range(2)] == [b"a", b"\x00\xff "]
    assert record.hypotheses() == [b"a", b"\x00\xff "]
    assert [record.extra(rank) for rank in range(3)] == [b"", b" 0-", b""]
    assert record.sparse().indptr.dtype == np.int64


def test_plain_data_survives_a_round_trip() -> None:
    value = {
        "none": None,
        "weights": np.array([[0.1, -1e300], [np.pi, 0.0]]),
        "state": {"state": 2**127 + 1, "negative": -(2**90)},
        "text": "caf\udcc3 é",
        "bytes": b"\xff\x00",
        "list": [1, 2.5, True, "x"],
        "number": np.float32(0.5),
        "count": np.int64(3),
        3: "a number as key",
    }
    found = decode_value(encode_value(value))
    np.testing.assert_array_equal(found.pop("weights"), value.pop("weights"))
    assert found == value
    assert decode_value(encode_value(np.arange(3, dtype=">i2"))).tolist() == [0, 1, 2]


@pytest.mark.parametrize("value", [object(), {"x": {1, 2}}, np.array([object()])])
def test_other_data_are_rejected(value: object) -> None:
    with pytest.raises(TypeError, match="cannot store a"):
        encode_value(value)
