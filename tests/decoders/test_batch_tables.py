"""Tables that are cut down to mini-batches: which lines, which order, and when it is worth it."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.moses.ini import read_moses_ini
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.batch_tables import BatchTables
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.protocol import BatchTask

PHRASES = b"a ||| x ||| 0.1\nb ||| y ||| 0.2\na b ||| x y ||| 0.3\na ||| z ||| 0.4\nd ||| w ||| 0.5"
ORDERS = b"a ||| x ||| 0.2 0.8\nd ||| w ||| 0.3 0.7\nb  b\t||| y ||| 0.4 0.6\n"
TYPE = "type=wbe-msd-bidirectional-fe-allff"
INI = (
    "[feature]\nUnknownWordPenalty\n"
    "PhraseDictionaryMemory num-features=1 path=phrases.gz table-limit=20 # text\n"
    f"LexicalReordering name=Order {TYPE} path=orders\n"
    "KENLM name=LM0 path=lm order=3\n"
    "[weight]\nPhraseDictionaryMemory0= 0.2\n"
)
SENTENCES = (b"a b", b"d")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "phrases.gz").write_bytes(gzip.compress(PHRASES))
    (tmp_path / "orders").write_bytes(ORDERS)
    (tmp_path / "lm").write_bytes(b"\\data\\\n")
    path = tmp_path / "moses.ini"
    path.write_text(INI)
    return path


def cut(config: Path, *flags: str) -> BatchTables | None:
    return BatchTables.of(config, flags, SENTENCES, config.parent)


def test_each_batch_gets_its_own_lines(config: Path, tmp_path: Path) -> None:
    tables = cut(config)
    assert tables is not None
    assert tables.names == ("PhraseDictionaryMemory0", "Order")
    phrases = [*PHRASES.splitlines(keepends=True)[:4], b"d ||| w ||| 0.5\n"]
    orders = ORDERS.splitlines(keepends=True)
    for texts, rows, others in (
        ([b"a b"], (0, 3, 2, 1), (0,)),
        ([b"d", b"a"], (4, 0, 3), (1, 0)),
        ([b"q"], (), ()),
        ([b"b b"], (1,), (2,)),  # not among the sentences that were expected
    ):
        rewritten = tables.write(texts, "batch")
        assert rewritten == tmp_path / "batch.moses.ini"
        assert (tmp_path / "batch.table1").read_bytes() == b"".join(phrases[row] for row in rows)
        assert (tmp_path / "batch.table2").read_bytes() == b"".join(orders[row] for row in others)
    before, after = read_moses_ini(config), read_moses_ini(rewritten)
    assert [line.path for line in after.features] == [None, "batch.table1", "batch.table2", "lm"]
    assert [line.name for line in after.features] == [line.name for line in before.features]
    assert after.features[1].arguments["table-limit"] == "20"
    assert after.weights == before.weights


def test_other_processes_read_the_tables_themselves(config: Path, tmp_path: Path) -> None:
    decoder = MosesDecoder(tmp_path / "moses", ())
    task = BatchTask(config, tmp_path, 2, executing=lambda command: None)
    assert ProcessDecoder(decoder, task).own_recipe() is None
    recipe = ProcessDecoder(decoder, task, cut(config)).own_recipe()
    made = pickle.loads(pickle.dumps(recipe)).make("worker1", lambda text: None)
    assert made.tables == cut(config)
    assert made.tables.write([b"d"], made.task.prefix).name == "worker1.moses.ini"
    assert (tmp_path / "worker1.table1").read_bytes() == b"d ||| w ||| 0.5\n"


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("path=phrases.gz", "path=missing.gz", ("Order",)),
        ("PhraseDictionaryMemory num", "PhraseDictionaryCompact num", ("Order",)),
        ("num-features=1", "num-features=1 input-factor=1", ("Order",)),
        ("bidirectional-fe", "bidirectional-f", ("PhraseDictionaryMemory0", "Order")),
        ("bidirectional-fe", "bidirectional-e", ("PhraseDictionaryMemory0",)),
        ("path=orders", "path=converted", ("PhraseDictionaryMemory0",)),
    ],
)
def test_other_tables_stay_whole(
    config: Path, tmp_path: Path, old: str, new: str, names: tuple[str, ...]
) -> None:
    for name in ("converted", "converted.minlexr"):
        (tmp_path / name).touch()
    config.write_text(INI.replace(old, new))
    tables = cut(config)
    assert tables is not None
    assert tables.names == names
    assert tables.loads_little == (len(names) == 2)


@pytest.mark.parametrize(
    "flags",
    [
        ("-xml-input", "exclusive"),
        ("-inputtype", "1"),
        ("-input-factors", "0", "1"),
        ("-search-algorithm", "3"),
        ("-s", "100", "-search-algorithm", "5"),
    ],
)
def test_other_input_than_plain_text_and_rules(config: Path, flags: tuple[str, ...]) -> None:
    assert cut(config, *flags) is None
    assert cut(config, "-search-algorithm", "1") is not None


def test_a_configuration_with_chart_search(config: Path) -> None:
    config.write_text(f"{INI}[search-algorithm]\n3\n")
    assert cut(config) is None


def test_tables_that_changed_are_read_again(config: Path, tmp_path: Path) -> None:
    tables = cut(config)
    assert tables is not None
    tables.write([b"d"], "batch")
    (tmp_path / "orders").write_bytes(b"d ||| other ||| 0.25 0.75\n")
    tables.write([b"d"], "batch")
    assert (tmp_path / "batch.table2").read_bytes() == b"d ||| other ||| 0.25 0.75\n"


def test_a_damaged_table(config: Path, tmp_path: Path) -> None:
    (tmp_path / "phrases.gz").write_bytes(gzip.compress(PHRASES * 99)[:-9])
    tables = cut(config)
    assert tables is not None
    with pytest.raises(FormatError, match=r"phrases\.gz"):
        tables.read()


def test_a_large_language_model_is_not_loaded_for_each_batch(config: Path, tmp_path: Path) -> None:
    tables = cut(config)
    assert tables is not None
    assert tables.loads_little
    for start, loads_little in (
        (b"\\data\\\n", False),
        (b"mmap lm http://kheafield.com/code format version 5\n\0", True),
    ):
        with (tmp_path / "lm").open("wb") as file:
            file.write(start)
            file.truncate(1 << 23)  # a sparse file
        assert tables.loads_little == loads_little
