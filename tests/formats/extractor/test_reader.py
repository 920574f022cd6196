"""features.dat and scores.dat, read back: text and binary, dense and sparse, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.extractor.data import SparseColumns, write_features, write_scores
from formats.extractor.reader import read_features, read_scores

TEXT = (
    b"FEATURES_TXT_BEGIN_0 4 2 2 LM0_0 TM0_0 \n"
    b"-44.1007 1e-05 WT_a=b=-0.5 PL_1,1=3 \n"
    b"0.333333 123457 PL_1,1=2 \n"
    b"FEATURES_TXT_END_0\n"
    b"FEATURES_TXT_BEGIN_0 2 1 2 LM0_0 TM0_0 \n"
    b"-0 7.12345678e+03 \n"
    b"FEATURES_TXT_END_0\n"
    b"FEATURES_TXT_BEGIN_0 4 0 2 LM0_0 TM0_0 \n"
    b"FEATURES_TXT_END_0\n"
)


def put(tmp_path: Path, text: bytes) -> Path:
    path = tmp_path / "file.dat"
    path.write_bytes(text)
    return path


def test_features_by_hand(tmp_path: Path) -> None:
    data = read_features(put(tmp_path, TEXT))
    assert data.names == ("LM0_0", "TM0_0")
    assert data.sentence_ids.tolist() == [4, 2, 4]
    assert data.offsets.tolist() == [0, 2, 3, 3]
    expected = [[-44.1007, 1e-5], [0.333333, 123457], [0, 7123.45678]]
    assert np.array_equal(data.dense, np.array(expected, dtype=np.float32))
    assert data.sparse_names == ("WT_a=b", "PL_1,1")
    assert data.sparse_indptr.tolist() == [0, 2, 3, 3]
    assert data.sparse_indices.tolist() == [0, 1, 1]
    assert data.sparse_data.tolist() == [-0.5, 3, 2]


def test_scores_by_hand_in_text_and_binary(tmp_path: Path) -> None:
    rows = np.array([[7, 9.5], [8, 9]], dtype="<f4").tobytes()
    text = (
        b"SCORES_TXT_BEGIN_0 5 1 2 BLEU,TER\n3 1.5 \nSCORES_TXT_END_0\n\n"
        b"SCORES_BIN_BEGIN_0 5 2 2 BLEU,TER\n" + rows + b"SCORES_BIN_END_0\n"
        b"SCORES_TXT_BEGIN_0 6 1 2 BLEU,TER\r\n4 2.5\r\nSCORES_TXT_END_0\r\n"
    )
    data = read_scores(put(tmp_path, text))
    assert data.metric == "BLEU,TER"
    assert data.sentence_ids.tolist() == [5, 5, 6]
    assert data.offsets.tolist() == [0, 1, 3, 4]
    assert data.stats.tolist() == [[3, 1.5], [7, 9.5], [8, 9], [4, 2.5]]


HEAD = b"FEATURES_TXT_BEGIN_0 0 1 1 A_0 \n"
END = b"FEATURES_TXT_END_0\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (b"", None, "no features block"),
        (b"\n\n", None, "no features block"),
        (b"garbage\n", 1, "'garbage' is not the beginning"),
        (b"SCORES_TXT_BEGIN_0 0 1 1 BLEU\n1 \nSCORES_TXT_END_0\n", 1, "not the beginning"),
        (b"FEATURES_TXT_BEGIN_0 0 one 1 A_0\n1 \n" + END, 1, "as numbers"),
        (b"FEATURES_TXT_BEGIN_0 0 1\n1 \n" + END, 1, "as numbers"),
        (b"FEATURES_TXT_BEGIN_0 0 1 2 A_0 \n1 2 \n" + END, 1, "names 1 columns"),
        (HEAD + b"1 \n" + END + HEAD.replace(b"A_0", b"B_0") + b"1 \n" + END, 4, "columns differ"),
        (HEAD + b"1 \n2 \n" + END, 1, "says 1 rows, but 2"),
        (HEAD.replace(b" 1 1 ", b" 1000000000000 1 ") + b"1 \n" + END, 1, "but 1 come"),
        (HEAD + b"1 \n", 1, "no FEATURES_TXT_END_0"),
        (HEAD + b"1 \n" + END + HEAD + b"1 2 \n" + END, 5, "2 values, but the header says 1"),
        (HEAD + b"nan \n" + END, 2, "'nan' is not a finite number"),
        (HEAD + b"1e39 \n" + END, 2, "'1e39' is not a finite number"),
        (HEAD + b"1 WT_x= \n" + END, 2, "'WT_x=' is not a finite number"),
        (HEAD + b"1 =3 \n" + END, 2, "'=3' is not a finite number"),
        (HEAD + b"1 WT_x=1 WT_x=1 \n" + END, 2, "repeats its name"),
        (b"FEATURES_BIN_BEGIN_0 0 1000000000000 1 A_0 \n\0\0\0\0", 1, "no FEATURES_BIN_END_0"),
        (b"FEATURES_BIN_BEGIN_0 0 1000000000000 0 \nFEATURES_BIN_END_0\n", 1, "no FEATURES_BIN"),
        (
            b"FEATURES_BIN_BEGIN_0 0 1 1 A_0 \n\0\0\xc0\x7fFEATURES_BIN_END_0\n",
            None,
            "not a finite",
        ),
    ],
)
def test_damaged_features(tmp_path: Path, text: bytes, line: int | None, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        read_features(put(tmp_path, text))
    assert caught.value.line == line
    assert caught.value.path is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"SCORES_TXT_BEGIN_0 0 1 1\n1 \nSCORES_TXT_END_0\n", "a metric's name"),
        (b"SCORES_TXT_BEGIN_0 0 1 1 BLEU\nx=1 \nSCORES_TXT_END_0\n", "0 values"),
        (b"SCORES_TXT_BEGIN_0 0 1 1 BLEU\n1 x=1 \nSCORES_TXT_END_0\n", "sparse features"),
        (
            b"SCORES_TXT_BEGIN_0 0 1 1 BLEU\n1 \nSCORES_TXT_END_0\n"
            b"SCORES_TXT_BEGIN_0 0 1 1 PER\n1 \nSCORES_TXT_END_0\n",
            "metric differs",
        ),
    ],
)
def test_damaged_scores(tmp_path: Path, text: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_scores(put(tmp_path, text))


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
ROWS = st.lists(
    st.tuples(
        st.tuples(FLOATS, FLOATS),
        st.dictionaries(st.sampled_from(["WT_a~b", "PL_1,2", "x=y_ä"]), FLOATS),
    ),
    max_size=8,
)


@given(st.lists(ROWS, min_size=1, max_size=4), st.integers(1, 2))
def test_write_and_read_round_trip(
    tmp_path_factory: pytest.TempPathFactory,
    blocks: list[list[tuple[tuple[float, float], dict[str, float]]]],
    threads: int,
) -> None:
    """Rows come back with the six digits that the format keeps; binary ones bit for bit."""
    rows = [row for block in blocks for row in block]
    if not rows:
        return
    dense = np.array([row[0] for row in rows], dtype=np.float32).reshape(-1, 2)
    names = ["WT_a~b", "PL_1,2", "x=y_ä"]
    sparse = SparseColumns(
        names,
        np.cumsum([0, *(len(row[1]) for row in rows)]),
        np.array([names.index(name) for row in rows for name in row[1]], dtype=np.int32),
        np.array([value for row in rows for value in row[1].values()], dtype=np.float32),
    )
    offsets = np.cumsum([0, *map(len, blocks)])
    ids = np.arange(len(blocks))
    path = tmp_path_factory.mktemp("files") / "features.dat"
    write_features(path, ["A_0", "A_1"], ids, offsets, dense, sparse)
    data = read_features(path, threads=threads)
    kept = [i for i, block in enumerate(blocks) if block]
    assert data.sentence_ids.tolist() == kept
    assert np.diff(data.offsets).tolist() == [len(blocks[i]) for i in kept]
    assert data.dense.tolist() == [[np.float32(f"{v:.6g}") for v in row[0]] for row in rows]
    for row, (_, features) in enumerate(rows):
        part = slice(data.sparse_indptr[row], data.sparse_indptr[row + 1])
        columns = data.sparse_indices[part]
        read = {
            data.sparse_names[c]: v for c, v in zip(columns, data.sparse_data[part], strict=True)
        }
        assert read == {
            name: np.float32(f"{value:.6g}")
            for name, value in features.items()
            if abs(value) >= 1e-5
        }
    write_scores(path, "X", ids, offsets, dense, binary=True)
    assert np.array_equal(read_scores(path).stats, dense)


@given(st.integers(0, len(TEXT) - 1), st.binary(max_size=3), st.integers(0, 5))
def test_damage_is_rejected_or_read(
    tmp_path_factory: pytest.TempPathFactory, at: int, inserted: bytes, removed: int
) -> None:
    """Whatever happens to a file, there is a FormatError or there are arrays that fit."""
    path = put(tmp_path_factory.mktemp("files"), TEXT[:at] + inserted + TEXT[at + removed :])
    try:
        data = read_features(path)
    except FormatError:
        return
    assert len(data.dense) == data.offsets[-1] == len(data.sparse_indptr) - 1
    assert np.isfinite(data.dense).all()


@pytest.mark.parametrize("kind", ["features", "BLEU.scores"])
def test_recorded_binary_and_text_agree(multi30k: Path, tmp_path: Path, kind: str) -> None:
    text = multi30k / "scores" / f"first100.{kind}.dat.gz"
    binary = multi30k / "scores" / f"first100.{kind}.bin.gz"
    if kind == "features":
        features, others = read_features(text), read_features(binary)
        assert features.names == others.names
        assert np.array_equal(features.dense, others.dense)
        assert np.array_equal(features.offsets, others.offsets)
    else:
        scores, other_scores = read_scores(text), read_scores(binary)
        assert scores.metric == other_scores.metric == "BLEU"
        assert np.array_equal(scores.stats, other_scores.stats)
        assert np.array_equal(scores.sentence_ids, other_scores.sentence_ids)


def test_recorded_sparse_features(multi30k: Path, tmp_path: Path) -> None:
    recorded = multi30k / "sparse" / "features.dat.gz"
    data = read_features(recorded)
    sparse = SparseColumns(
        data.sparse_names, data.sparse_indptr, data.sparse_indices, data.sparse_data
    )
    again = tmp_path / "again"
    write_features(again, data.names, data.sentence_ids, data.offsets, data.dense, sparse)
    other = read_features(again)
    assert other.sparse_names == data.sparse_names
    assert np.array_equal(other.sparse_data, data.sparse_data)
