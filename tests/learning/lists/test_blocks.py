"""Test how files become blocks: formats, names of features, sentence ids and references."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.nbest.block import NBestList, concatenate
from formats.nbest.list_format import SentenceIds
from formats.pipes import InputFile, wrap_files
from mosesplug.errors import DataError, UsageError
from mosesplug.learning.lists.blocks import (
    describe_formats,
    find_dense_features,
    read_file_blocks,
    read_list,
    read_list_blocks,
    read_lists_ahead,
    scan_lists,
)
from mosesplug.learning.lists.merging import load_lists
from mosesplug.learning.lists.references import match_references
from mosesplug.metrics import metric
from mosesplug.sentence_ids import arrange_lines
from mosesplug.settings.lists import NO_SETTINGS, ListSettings, parse_renames
from tests.store.toys import Hypothesis, make_list

TRAVATAR = b"""\
0 ||| a b ||| -1 ||| lm=-3 len=2 r_1=1
0 ||| a ||| -2 ||| lm=-4 len=1 r_2=1
1 ||| c ||| -3 ||| lm=-5 len=1 r_1=2
"""
MOSES = b"""\
u2 ||| a b ||| LM0= -3 TM0= 1 2 WT_a= 1 WT_b= 2 ||| -1
u2 ||| a ||| LM0= -4 TM0= 3 4 D_x= 5 ||| -2
u1 ||| c ||| LM0= -5 TM0= 5 6 WT_b= 7 ||| -3
"""


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("travatar").write_bytes(TRAVATAR)
    Path("moses").write_bytes(MOSES)
    return tmp_path


def read(path: str, settings: ListSettings, dense: tuple[str, ...] | None = None) -> NBestList:
    return concatenate(list(read_file_blocks(Path(path), settings, dense=dense)))


def sparse_rows(block: NBestList) -> list[dict[str, float]]:
    rows = []
    for first, last in zip(block.sparse_indptr[:-1], block.sparse_indptr[1:], strict=True):
        names = [block.sparse_names[index] for index in block.sparse_indices[first:last]]
        rows.append(dict(zip(names, block.sparse_data[first:last].tolist(), strict=True)))
    return rows


def test_drop_and_rename_dense_and_sparse_features(lists: Path) -> None:
    settings = ListSettings(drop_feature=("TM0", "WT_*"), rename=("LM0=lm", "D_x=D_y"))
    block = read("moses", settings)
    assert block.groups == (("lm", 1),)
    assert block.dense.tolist() == [[-3.0], [-4.0], [-5.0]]
    assert sparse_rows(block) == [{}, {"D_y": 5.0}, {}]
    assert block.dense.flags.c_contiguous
    whole = read("moses", ListSettings(drop_feature=("WT_b",)))
    assert sparse_rows(whole) == [{"WT_a": 1.0}, {"D_x": 5.0}, {}]
    swapped = read("moses", ListSettings(rename=("LM0=TM0", "TM0=LM0")))
    assert swapped.groups == (("TM0", 1), ("LM0", 2))


def test_dense_names_are_the_new_ones(lists: Path) -> None:
    settings = ListSettings(drop_feature=("len",), rename=("lm=LM", "r_1=R"))
    assert find_dense_features([Path("travatar")], settings) == ("LM", "R", "r_2")
    block = read("travatar", settings, ("LM", "R"))
    assert block.groups == (("LM", 1), ("R", 1))
    assert block.dense.tolist() == [[-3.0, 1.0], [-4.0, 0.0], [-5.0, 2.0]]
    assert sparse_rows(block) == [{}, {"r_2": 1.0}, {}]
    named = ListSettings(dense="LM", rename=("lm=LM",))
    assert find_dense_features([Path("travatar")], named) == ("LM",)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"drop_feature": ("LMX",)}, "--drop-feature LMX: there is no feature LMX; known: LM0"),
        (
            {"drop_feature": ("W*", "X*")},
            r"--drop-feature X\*: there is no feature X\*; .* WT_\*, D_\*. C",
        ),
        ({"rename": ("lm=LM",)}, "--rename lm=LM: there is no feature lm; known: LM0"),
        ({"rename": ("LM0=TM0",)}, "--rename LM0=TM0: moses has another feature TM0; choose"),
        ({"rename": ("LM0=WT_b",)}, "--rename LM0=WT_b: moses has another feature WT_b"),
    ],
)
def test_names_that_do_not_fit(lists: Path, settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read("moses", ListSettings(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rename": ("lm",)}, "--rename 'lm': give OLD=NEW"),
        ({"rename": ("=lm",)}, "--rename '=lm': give OLD=NEW"),
        ({"rename": ("a=b c",)}, "give OLD=NEW, names without blanks"),
        ({"rename": ("a=b", "a=c")}, "--rename a=c: a has the new name b already"),
        ({"rename": ("a=c", "b=c")}, "--rename b=c: another feature gets the name c already"),
        ({"rename": ("a=b",), "drop_feature": ("a",)}, "exclude each other"),
        ({"drop_feature": ("*",)}, r"--drop-feature '\*' drops all features"),
        ({"format": "mosses"}, "--format: unknown list format 'mosses'; known: auto"),
        ({"columns": "id,,hyp"}, "--columns=id,,hyp: a name is empty"),
    ],
)
def test_settings_that_cannot_be_used(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ListSettings(**settings)  # type: ignore[arg-type]


NAMES = st.text(st.sampled_from("abcXYZ_0"), min_size=1, max_size=5)


@hypothesis_settings(deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=6, unique=True), st.data())
def test_renaming_back_is_the_identity(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("lists") / "list"
    values = " ".join(f"{name}={number}" for number, name in enumerate(names, start=1))
    path.write_text(f"0 ||| x ||| {values} ||| 1\n")
    others = data.draw(st.permutations([f"new{n}" for n in range(len(names))]))
    renames = tuple(f"{old}={new}" for old, new in zip(names, others, strict=True))
    settings = ListSettings(format="cdec", rename=renames)
    assert parse_renames(renames) == tuple(zip(names, others, strict=True))
    block = read(str(path), settings, tuple(others[:3]))
    plain = read(str(path), ListSettings(format="cdec"), tuple(names[:3]))
    assert block.groups == tuple((name, 1) for name in others[:3])
    assert block.dense.tolist() == plain.dense.tolist()
    back = dict(zip(others, names, strict=True))
    assert tuple(back[name] for name in block.sparse_names) == plain.sparse_names
    assert block.sparse_data.tolist() == plain.sparse_data.tolist()


def test_whole_lists_are_those_of_the_blocks(lists: Path) -> None:
    for path, dense in (("moses", None), ("travatar", ("lm",))):
        ids = SentenceIds()
        whole = read_list(path, NO_SETTINGS, dense=dense, ids=ids)
        blocks = read(path, NO_SETTINGS, dense)
        for name in ("sentence_ids", "dense", "scores", "sparse_data", "lines"):
            assert getattr(whole, name).tolist() == getattr(blocks, name).tolist()
        assert ids.names == (("u2", "u1") if path == "moses" else ())


def test_steps_see_all_files_and_finish_after_the_last(lists: Path) -> None:
    Path("second").write_bytes(MOSES.replace(b"LM0", b"LM1"))
    settings = ListSettings(rename=("LM1=LM0",))
    files = read_list_blocks([Path("moses"), Path("second")], settings)
    groups = [block.groups for blocks in files for block in blocks]
    assert set(groups) == {(("LM0", 1), ("TM0", 2))}


def test_formats_that_were_found(lists: Path) -> None:
    files = [Path("moses"), Path("travatar"), Path("travatar")]
    [line] = describe_formats(files, NO_SETTINGS)
    assert line == "travatar: format travatar (id ||| text ||| score ||| lm=-3 len=2)"
    assert list(describe_formats(files, ListSettings(format="travatar"))) == []


def test_a_scan_counts(lists: Path) -> None:
    scan = scan_lists([Path("travatar")], NO_SETTINGS)
    assert scan.counts == {"lm": 3, "len": 3, "r_1": 2, "r_2": 1}
    assert (scan.ids, scan.sentences, scan.hypotheses) == ((), (0, 1), 3)
    scan = scan_lists([Path("moses")], NO_SETTINGS)
    assert (scan.ids, scan.sentences, scan.hypotheses) == (("u2", "u1"), (0, 1), 3)


LINES = [b"u1 c", b"u2 a b", b"u3 not in the lists"]


def test_references_by_id_may_have_any_order(lists: Path) -> None:
    files, refs = [Path("moses")], [LINES]
    found = match_references(files, NO_SETTINGS, refs, "refs")
    assert found.ids.names == ("u2", "u1")
    assert found.lines == [[b"a b", b"c"]]
    several = match_references(files, NO_SETTINGS, [LINES, LINES[::-1]], "refs")
    assert several.lines == [[b"a b", b"c"]] * 2
    objects = [b'{"id": "u2", "text": "a b"}', b'{"ref": "c", "id": "u1"}']
    assert match_references(files, NO_SETTINGS, [objects], "refs").lines == [[b"a b", b"c"]]
    utterances = [b'{"utt_id": "u1", "text": "c"}', b'{"utt_id": "u2", "text": "a b"}']
    assert match_references(files, NO_SETTINGS, [utterances], "refs").lines == [[b"a b", b"c"]]
    tabs = [b"u2\ta b", b"u1\tc"]
    assert match_references(files, NO_SETTINGS, [tabs], "refs").lines == [[b"a b", b"c"]]


def test_references_without_ids_stay_as_they_are(lists: Path) -> None:
    plain = [[b"a b", b"c"]]
    assert match_references([Path("moses")], NO_SETTINGS, plain, "refs").lines == plain
    assert match_references([Path("travatar")], NO_SETTINGS, plain, "refs").lines == plain
    assert arrange_lines(plain, ("u2", "u1"), "refs") == plain
    as_words = ListSettings(ids=False)
    for path in ("moses", "travatar"):
        assert match_references([Path(path)], as_words, [LINES], "refs").lines == [LINES]


def test_references_with_ids_beside_lists_without(lists: Path) -> None:
    with pytest.raises(DataError, match="refs:1: the line begins with 'u1', which looks like a"):
        match_references([Path("travatar")], NO_SETTINGS, [LINES], "refs")
    given = ListSettings(ids=True)
    found = match_references([Path("travatar")], given, [LINES[:2]], "refs")
    assert found.lines == [[b"c", b"a b"]]
    numbered = [b"1 c", b"0 a b"]
    assert match_references([Path("travatar")], NO_SETTINGS, [numbered], "refs").lines == [
        [b"a b", b"c"]
    ]
    with pytest.raises(DataError, match="refs: the lines begin with numbers, as '7', which do not"):
        match_references([Path("travatar")], given, [[b"7 c", b"3 a b"]], "refs")


@pytest.mark.parametrize("file", ["moses", "travatar"])
def test_json_objects_without_ids_stand_for_their_texts(lists: Path, file: str) -> None:
    manifest = [b'{"audio_filepath": "1.wav", "text": "a b"}', b'{"text": "c"}']
    found = match_references([Path(file)], NO_SETTINGS, [manifest], "refs")
    assert found.lines == [[b"a b", b"c"]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [b"u1 c", b"u2 a", b"u2 b"],
            r"refs:3: the id 'u2' has two lines. Remove one",
        ),
        (
            [b"u2 a"],
            r"refs: the sentence id 'u1' of the lists has no line",
        ),
        (
            [b"v%d a" % number for number in range(5)],
            r"refs:1: the line begins with 'v0', which looks like a sentence id, but the lists "
            "have other ids, as 'u2'",
        ),
    ],
)
def test_references_of_other_ids(lists: Path, lines: list[bytes], message: str) -> None:
    with pytest.raises(DataError, match=message):
        match_references([Path("moses")], NO_SETTINGS, [lines], "refs")


def test_an_id_without_reference(lists: Path) -> None:
    Path("moses").write_bytes(MOSES + b"u7 ||| d ||| LM0= 1 TM0= 1 1 ||| 1\n")
    with pytest.raises(DataError, match="refs: the sentence id 'u7' of the lists has no line"):
        match_references([Path("moses")], NO_SETTINGS, [LINES], "refs")


def test_lists_may_lack_sentences_if_the_references_give_the_order(lists: Path) -> None:
    lines = MOSES.splitlines(keepends=True)
    Path("one").write_bytes(lines[0] + lines[1])
    Path("two").write_bytes(lines[2] + lines[0])  # u1, u2: the order of the references
    refs = [[b"u1 c", b"u2 a b"]]
    found = match_references([Path("one"), Path("two")], NO_SETTINGS, refs, "refs")
    assert found.ids.names == ("u1", "u2")
    merged = load_lists([Path("one"), Path("two")], refs, metric("BLEU", ""))
    assert np.diff(merged.tuning_set.offsets).tolist() == [1, 2]
    with pytest.raises(FormatError, match="two:2: sentence 'u2' comes after 'u1'"):
        load_lists([Path("one"), Path("two")], [[b"c", b"a b"]], metric("BLEU", ""))


def test_lines_and_ids_must_be_as_many(lists: Path) -> None:
    bleu = metric("BLEU", "")
    assert load_lists([Path("moses")], [[b"a b", b"c"]], bleu).tuning_set.n_sentences == 2
    with pytest.raises(DataError, match="3 references for 2 sentence ids"):
        load_lists([Path("moses")], [[b"a b", b"c", b"d"]], bleu)
    with pytest.raises(Exception, match="sentence 1 does not exist"):
        load_lists([Path("moses")], [[b"a b"]], bleu)


def test_ids_and_numbers_give_the_same_tuning_set(lists: Path) -> None:
    Path("numbers").write_bytes(MOSES.replace(b"u2 ", b"0 ").replace(b"u1 ", b"1 "))
    bleu = metric("BLEU", "")
    one = load_lists([Path("moses")], [LINES], bleu).tuning_set
    other = load_lists([Path("numbers")], [[b"a b", b"c"]], bleu).tuning_set
    assert one.dense.tolist() == other.dense.tolist()
    assert one.stats.tolist() == other.stats.tolist()
    assert one.offsets.tolist() == other.offsets.tolist()


@pytest.mark.parametrize(
    ("file", "text", "n_opened"),
    # The first lines, all for the references' ids and the tuning set; a scan for dense features.
    [("moses", MOSES, 3), ("packed", gzip.compress(MOSES), 3), ("travatar", TRAVATAR, 4)],
)
def test_a_file_is_opened_once_for_each_reading(
    lists: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: bytes, n_opened: int
) -> None:
    for path in (file, "second"):
        Path(path).write_bytes(text)
    opened = Counter[str]()
    open_file = InputFile.open

    def count(path: InputFile) -> BufferedReader:
        opened[str(path)] += 1
        return open_file(path)

    monkeypatch.setattr(InputFile, "open", count)
    files = wrap_files([Path(file), Path("second")])
    list(describe_formats(files, NO_SETTINGS))
    merged = load_lists(files, [[b"a b", b"c"]], metric("BLEU", ""))
    assert merged.hypotheses == 6
    # Ids are those of the first file.
    assert opened == {file: n_opened, "second": n_opened - 1}


@pytest.mark.parametrize("most_bytes", [0, 1, 3, 100])
def test_later_files_are_read_before_the_first_ends(most_bytes: int) -> None:
    made = [[make_list([Hypothesis(k, b"a")], path=f"{n}") for k in range(2)] for n in range(4)]
    read: list[str] = []

    def read_blocks(blocks: list[NBestList]) -> Iterator[NBestList]:
        for block in blocks:
            read.append(block.path)
            yield block

    lists = read_lists_ahead(map(read_blocks, made), most_bytes)
    first = next(lists)
    assert [next(first), next(first)] == made[0]
    assert read == ["0", "0"]
    assert list(first) == []
    assert len(read) == 2 + max(1, min(most_bytes, 6))
    assert [list(blocks) for blocks in lists] == made[1:]
    assert read == sorted(block.path for blocks in made for block in blocks)
    assert list(read_lists_ahead(iter(()), most_bytes)) == []
