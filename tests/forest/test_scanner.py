"""The compiled scanner of search graphs: the graph of the readers, and never one they reject."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.graphs.hypergraph import HypergraphFile
from formats.graphs.hypergraph_reader import read_hypergraph
from formats.text import read_bytes
from mosesplug.forest.scanner import scan_graph

FIRST = b"# target ||| features ||| source-covered\n"
DENSE = FIRST + (
    b"4 7\n"
    b"# node 0\n1\n<s> |||  ||| 0\n"
    b"# node 1\n2\n[0] a b  ||| LM0=-0.5 TM0_1=2.25 TM0_2=0.000000  ||| 2\n"
    b"[0] a  ||| LM0=-14.987647 TM0_1=-0.000000 TM0_2=-100.000000  ||| 2\n"
    b"# node 2\n2\n[1] [0] c  ||| LM0=-1 TM0_1=2 TM0_2=3.141593  ||| 3\n"
    b"[0] # c a  ||| LM0=1 TM0_1=2 TM0_2=3  ||| 3\n"
    b"# node 3\n2\n[1] </s> |||  ||| 3\n[2] </s> |||  ||| 3\n"
)
SPARSE = DENSE.replace(b" TM0_1=2 ", b" ").replace(b"  ||| 2\n", b" WT_a=b=-0.5  ||| 2\n")
NUMBERS = (
    *(
        "0",
        "-0",
        "7.",
        ".5",
        "-.25",
        "0.000001",
        "-9.999999",
        "12.345678",
        "1234567.8",
        "00000001.5",
    ),
    *("123456789012345", "9007199254740993", "0.1234567890123456789", "-0.000000000000012345"),
    *("1e-3", "-2.5E+7", "+1", "1e38", "-3.4028235e38"),
)
WRONG_NUMBERS = ("", "-", ".", "1.2.3", "--1", "nan", "inf", "1e39", "0x1", "1_0", "1e", "1=2")


def assert_same(found: HypergraphFile, expected: HypergraphFile) -> None:
    for name, value in vars(expected).items():
        other = getattr(found, name)
        if isinstance(value, np.ndarray):
            assert other.dtype == value.dtype, name
            assert other.tobytes() == value.tobytes(), name
        else:
            assert other == value, name


def assert_alike(text: bytes, path: Path) -> bool:
    """Compare with the reader; return whether the scanner accepts the text."""
    path.write_bytes(text)
    found = scan_graph(str(path), text)
    try:
        expected = read_hypergraph(path)
    except FormatError:
        assert found is None
    else:
        if found is not None:
            assert_same(found, expected)
    return found is not None


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs") / "0"


@pytest.mark.parametrize(
    "text",
    [
        DENSE,
        SPARSE,
        DENSE.removesuffix(b"\n"),
        DENSE + b"\n# the end\n",
        DENSE.replace(b"# node 2\n", b"\n\n"),
        DENSE.replace(b" b ", b"  b|c  "),
        DENSE.replace(b"</s>", "Ã©\u3000".encode("latin-1", "ignore") + b"\xff"),
        FIRST + b"1 1\n1\nx ||| A=1 ||| 0\n",
        FIRST + b"1 1\n1\n |||  ||| 0\n",
    ],
)
def test_usual_graphs_are_scanned(text: bytes, path: Path) -> None:
    assert assert_alike(text, path)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        FIRST,
        FIRST + b"0 0\n",
        FIRST + b"1 999999999\n1\nx |||  ||| 0\n",
        DENSE.replace(b"4 7", b"4 8"),
        DENSE.replace(b"# node 3\n2", b"# node 3\n1"),
        DENSE.replace(b"# node 3\n2", b"# node 3\n3"),
        DENSE.replace(b"[2]", b"[3]"),
        DENSE.replace(b"TM0_2=0.000000", b"TM0_1=0.000000"),
        DENSE.replace(b"TM0_2=0.000000", b"=0.000000"),
        DENSE.replace(b"|||  ||| 0", b"||| ||| 0"),
        DENSE.replace(b"TM0_2=0.000000", b"TM0_2"),
        DENSE + b"1\n",
        *(DENSE[:end] for end in range(len(FIRST) + 4, len(DENSE) - 8, 7)),
    ],
)
def test_damaged_graphs_are_refused(text: bytes, path: Path) -> None:
    assert not assert_alike(text, path)


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_rounded_as_by_python(number: str, path: Path) -> None:
    text = DENSE.replace(b"3.141593", number.encode())
    assert assert_alike(text, path)
    found = scan_graph("graph", text)
    assert found is not None
    assert found.feature_values[8] == np.float32(float(number))


@pytest.mark.parametrize("number", WRONG_NUMBERS)
def test_wrong_numbers_are_refused(number: str, path: Path) -> None:
    assert not assert_alike(DENSE.replace(b"3.141593", number.encode()), path)


@given(value=st.floats(-1e9, 1e9), digits=st.integers(0, 12))
def test_decimals_are_rounded_correctly(value: float, digits: int) -> None:
    spelled = f"{value:.{digits}f}"
    found = scan_graph(
        "graph", FIRST + b"1 1\n1\nx ||| A=%b ||| 0\n" % spelled.encode() + b"#" * 99
    )
    assert found is not None
    assert found.feature_values.tobytes() == np.float32(float(spelled)).tobytes()


CHARACTERS = "ab|#=[]-1é"
NAMES = ("A", "LM0", "TranslationModel0_1", "TranslationModel0_2", "a=b", "é")


def make_token(random: Random) -> str:
    """A word of any of some characters; three bars are no word, since they end the words."""
    token = "".join(random.choices(CHARACTERS, k=random.choice([1, 1, 2, 3, 3, 7, 12])))
    return make_token(random) if token == "|||" else token


def make_graph(seed: int) -> bytes:
    """Nodes of some edges with any words, features and numbers."""
    random = Random(seed)
    lines, n_edges = [], 0
    n_nodes = random.randint(1, 4)
    for node in range(n_nodes):
        count = random.randint(1, 3)
        lines.append(f"# node {node}\n{count}")
        for _ in range(count):
            tails = [random.randrange(node) for _ in range(random.randint(0, 2) if node else 0)]
            words = [make_token(random) for _ in range(random.randint(0, 3))]
            names = random.sample(NAMES, random.randint(0, 4))
            features = " ".join(f"{name}={random.choice(NUMBERS)}" for name in names)
            target = " ".join([*(f"[{tail}]" for tail in tails), *words])
            lines.append(f"{target} ||| {features}  ||| {random.randint(0, 99)}")
        n_edges += count
    return FIRST + f"{n_nodes} {n_edges}\n{chr(10).join(lines)}\n".encode()


def graphs() -> st.SearchStrategy[bytes]:
    """Graphs by a seed: drawing one part by part takes longer than scanning it."""
    return st.integers(0, 2**32 - 1).map(make_graph)


@given(text=graphs())
def test_scanned_graphs_are_those_of_the_reader(text: bytes, path: Path) -> None:
    accepted = assert_alike(text, path)
    words = re.findall(rb"(?m)^(.*?) \|\|\| ", text)
    if not any(word[:1] in b"[|" for line in words for word in line.split(b" ") if word):
        assert accepted


@given(
    text=st.sampled_from([DENSE, SPARSE]) | graphs(),
    at=st.floats(0, 1, exclude_max=True),
    removed=st.integers(0, 12),
    inserted=st.text("0129-.=[]|# \n\tae_\r<\0", max_size=3),
)
def test_damage_is_never_overlooked(
    text: bytes, at: float, removed: int, inserted: str, path: Path
) -> None:
    place = int(at * len(text))
    assert_alike(text[:place] + inserted.encode() + text[place + removed :], path)


def test_names_without_room_are_left_to_the_reader(path: Path) -> None:
    words = b" ".join(b"w%d" % number for number in range((1 << 15) + 1))
    assert not assert_alike(FIRST + b"1 1\n1\n%b |||  ||| 0\n" % words, path)
    assert assert_alike(FIRST + b"1 1\n1\n%b |||  ||| 0\n" % words.rpartition(b" ")[0], path)


def test_many_odd_numbers_are_left_to_the_reader(path: Path) -> None:
    features = b" ".join(b"A%d=1e-30" % number for number in range((1 << 12) + 1))
    assert not assert_alike(FIRST + b"1 1\n1\nx ||| %b ||| 0\n" % features, path)
    fewer = features.rpartition(b" ")[0]
    assert assert_alike(FIRST + b"1 1\n1\nx ||| %b ||| 0\n" % fewer, path)


def test_recorded_graphs_are_scanned(multi30k: Path) -> None:
    for number in range(10, 60, 20):
        path = multi30k / "forest" / "hypergraph" / f"{number}.gz"
        found = scan_graph(str(path), read_bytes(path))
        assert found is not None
        assert_same(found, read_hypergraph(path))
