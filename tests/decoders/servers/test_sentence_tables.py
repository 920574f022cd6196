"""Phrase tables of one sentence: which entries, in which order, under which configuration."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from formats.moses.ini import read_moses_ini
from mosesplug.decoders.servers.sentence_tables import (
    SentenceTables,
    describe_tables,
    remove_tables,
)

TABLE = (
    b"a ||| x ||| 0.1\n"
    b"a ||| y ||| 0.2 ||| 0-0\n"
    b"a b ||| x y ||| 0.3\n"
    b"b  c\t||| z ||| 0.4\n"
    b"d ||| w ||| 0.5\n"
    b"a ||| v ||| 0.6"
)
INI = (
    "[feature]\nUnknownWordPenalty\n"
    "PhraseDictionaryMemory num-features=1 path=table.gz table-limit=20 # text\n"
    "PhraseDictionaryCompact name=Second path=second.minphr num-features=1\n"
    "[weight]\nUnknownWordPenalty0= 1\nPhraseDictionaryMemory0= 0.2\nSecond= 0.1\n"
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "table.gz").write_bytes(gzip.compress(TABLE))
    path = tmp_path / "moses.ini"
    path.write_text(INI)
    return path


def test_the_entries_of_a_sentence(config: Path, tmp_path: Path) -> None:
    tables = SentenceTables.of(config)
    assert tables is not None
    file = tmp_path / "tables" / "PhraseDictionaryMemory0" / "grammar.0.gz"
    lines = TABLE.splitlines(keepends=True)
    for text, rows in (
        (b"a b", (0, 1, 5, 2)),
        (b"a|N b|V|x", (0, 1, 5, 2)),
        (b" b\tc  d\n", (3, 4)),
        (b"", ()),
        (b"d d", (4,)),
    ):
        tables.write(text, tmp_path / "tables", tmp_path, {})
        assert file.read_bytes() == b"".join(lines[row].rstrip(b"\n") + b"\n" for row in rows)
    # Another process reads the table itself.
    pickle.loads(pickle.dumps(tables)).write(b"d", tmp_path / "tables", tmp_path, {})
    assert file.read_bytes() == lines[4]
    (tmp_path / "tables" / "mine").touch()
    remove_tables(tmp_path / "tables")
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("section", "flags", "longest"),
    [
        ("", (), 20),
        ("[max-phrase-length]\n2\n", (), 2),
        ("[max-phrase-length]\n2\n", ("-v", "0", "-max-phrase-length", "1"), 1),
        ("", ("--max-phrase-length", "none"), 20),
    ],
)
def test_longer_phrases_are_left_out(
    section: str, flags: tuple[str, ...], longest: int, config: Path, tmp_path: Path
) -> None:
    config.write_text(INI + section)
    words = [b"w%d" % number for number in range(30)]
    phrases = [b" ".join(words[:length]) for length in range(1, 31)]
    rows = [b"%s ||| x ||| 0.1\n" % phrase for phrase in phrases]
    (tmp_path / "table.gz").write_bytes(gzip.compress(b"".join(rows)))
    tables = SentenceTables.of(config, flags)
    assert tables is not None
    tables.write(b" ".join(words), tmp_path / "tables", tmp_path, {})
    file = tmp_path / "tables" / "PhraseDictionaryMemory0" / "grammar.0.gz"
    assert file.read_bytes() == b"".join(rows[:longest])


def test_expected_sentences_are_read_at_once(config: Path, tmp_path: Path) -> None:
    tables = SentenceTables.of(config)
    assert tables is not None
    tables.expect([b"a b", b"d"], tmp_path)
    (tmp_path / "table.gz").unlink()
    tables.write(b"a b", tmp_path / "tables", tmp_path, {})


def test_the_configuration(config: Path, tmp_path: Path) -> None:
    tables = SentenceTables.of(config)
    assert tables is not None
    tables.write_config(tmp_path / "server1.moses.ini", Path("server1.tables"))
    written = (tmp_path / "server1.moses.ini").read_text().splitlines()
    changed = [
        "PhraseDictionaryALSuffixArray num-features=1 table-limit=20"
        " path=server1.tables/PhraseDictionaryMemory0 name=PhraseDictionaryMemory0",
        "PhraseDictionaryCompact name=Second path=second.minphr num-features=1 cache-size=0",
    ]
    assert written == [*INI.splitlines()[:2], *changed, *INI.splitlines()[4:]]
    old, new = read_moses_ini(config), read_moses_ini(tmp_path / "server1.moses.ini")
    assert [line.name for line in new.features] == [line.name for line in old.features]


@pytest.mark.parametrize(
    "change",
    [
        ("[weight]", "[xml-input]\nexclusive\n[weight]"),
        ("[weight]", "[weight-file]\nsparse\n[weight]"),
        ("[weight]", "[input-factors]\n0\n1\n[weight]"),
        ("path=table.gz", "path=table.gz input-factor=1"),
        ("path=table.gz", ""),
        ("Compact", "OnDisk"),
    ],
)
def test_configurations_that_cannot_be_rewritten(config: Path, change: tuple[str, str]) -> None:
    config.write_text(INI.replace(*change))
    assert SentenceTables.of(config) is None


def test_flags_that_hide_phrases(config: Path) -> None:
    assert SentenceTables.of(config, ("-v", "0")) is not None
    for flags in (("-xi", "exclusive"), ("-input-factors", "0", "1"), ("-fd", "/")):
        assert SentenceTables.of(config, flags) is None


def test_the_cause(config: Path) -> None:
    cause = describe_tables(config)
    assert cause is not None
    assert cause.startswith("PhraseDictionaryMemory keeps the scores and the pruning")
    assert "PhraseDictionaryCompact keeps the scores of entries" in cause
    config.write_text("[feature]\nProbingPT path=x num-features=4\n")
    assert describe_tables(config) is None
    assert SentenceTables.of(config) is None
