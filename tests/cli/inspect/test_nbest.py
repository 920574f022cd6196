"""``mosesplug nbest`` as a user calls it."""

from __future__ import annotations

import io
import json
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import lmdb
import pytest

from mosesplug import open_run
from mosesplug.cli.main import main
from mosesplug.tuning.workdir.records import ListFigures
from tests.results.runs import LISTS, REFERENCE, make_run

COLUMNS = [
    *("iteration", "date", "sentences", "hypotheses", "new", "size", "change"),
    *("BLEU", "oracle", "in lists", "held out"),
]

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def nbest(capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls the command; its exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["nbest", *map(str, words)])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return run


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory, and the references beside it."""
    (tmp_path / "reference").write_bytes(b"\n".join(REFERENCE) + b"\n")
    return make_run(tmp_path / "work")


def test_ls(nbest: Run, work: Path) -> None:
    code, out, _ = nbest("ls", work)
    head, first, second = out.splitlines()
    assert code == 0
    assert re.split("  +", head.strip()) == COLUMNS
    assert re.split("  +", first.strip())[2:5] == ["3", "5", "5"]
    assert re.split("  +", second.strip())[2:5] == ["3", "4", "1"]
    found = json.loads(nbest("ls", work, "--json", "--no-oracle")[1])
    assert [line["oracle"] for line in found["iterations"]] == [None, None]
    assert found["signature"].startswith("BLEU|nrefs:1")
    dates = [datetime.fromisoformat(line["date"]) for line in found["iterations"]]
    assert all(date.utcoffset() == timedelta(0) for date in dates)
    shown = re.split("  +", second.strip())[1]
    assert shown == dates[1].astimezone().strftime("%Y-%m-%d %H:%M")


def test_show_and_diff(nbest: Run, work: Path) -> None:
    refs = ("--refs", work.parent / "reference")
    _, out, _ = nbest("show", work, 1, *refs, "--features")
    lines = out.splitlines()
    assert lines[0] == "reference  she sees a small dog today"
    assert re.split("  +", lines[3].strip()) == [
        *("1", "-0.7500", "0.8187", "5/5 4/4 3/3 2/2", "1-best, hope", "she sees a small dog")
    ]
    assert any(line.startswith("LM0_0") and line.endswith("-#########") for line in lines)
    _, out, _ = nbest("show", work, 1, "--top", 1, "--iteration", 1)
    assert "(1 more)" not in out  # the fear is shown too, and there is no more
    found = json.loads(nbest("show", work, 1, "--sort", "metric", "--json")[1])
    assert found["sentence_metric"] == "BLEU+1"
    assert found["hypotheses"][0]["text"] == "she sees a small dog today"
    _, out, _ = nbest("diff", work, 1)
    assert out.splitlines()[-2:] == [
        "LM0_0             -3       -4  0.2500   +0.2500  0.0000  -inf to 0.0000",
        "model score  -0.7500  -1.0000           +0.2500",
    ]
    same = nbest("diff", work, 1, "1-best", "fear", "--weights", f"{work}:1")[1]
    assert same.endswith("A and B are the same hypothesis; name another one, by its rank\n")
    found = json.loads(nbest("diff", work, 1, "1-best", "2", "--json")[1])
    assert found["b"]["text"] == "she sees one dog"
    code, _, error = nbest("diff", work, 1, "best")
    assert code == 2
    assert "no hypothesis 'best'" in error


def test_diff_of_iterations(nbest: Run, work: Path) -> None:
    refs = ("--refs", work.parent / "reference")
    code, out, _ = nbest("diff", work, "--iterations", 1, 2, *refs)
    lines = out.splitlines()
    assert code == 0
    assert lines[1] == (
        "3 sentences with lists in both: the 1-best of 2 has other words, that of 0 the same words "
        "with other features"
    )
    assert lines[3].startswith("3 hypotheses are in both lists of their sentence: 66.7%")
    table = [line.split() for line in lines if line.startswith(("LM0_0", "all"))]
    assert table == [
        ["LM0_0", *("0.5000", "0.2500", "-4", "-2.0000", "-1.0000", "+1.0000"), *"220"],
        ["all", "-1.5000", "-0.2500", "+1.2500", *"220"],
    ]
    assert "  reference  she sees a small dog today" in lines
    assert "lost most:" not in out
    found = json.loads(nbest("diff", work, "--iterations", 2, 1, "--json")[1])
    assert found["sentence_metric"] == "BLEU+1"
    assert [each["changed"] for each in found["sentences"]] == [True, True, False]
    assert [each["shared"] for each in found["sentences"]] == [2, 0, 1]
    for words, message in (
        ((1, "--iterations", 1, 2), "leave SENTENCE"),
        ((), "name a SENTENCE, or two iterations"),
        (("--iterations", 1, 1), "two different iterations"),
        (("--iterations", 1, 2, "--iteration", 1), "leave SENTENCE"),
        (("--iterations", 1, 2, "--weights", work), "leave SENTENCE"),
        (("--weights", work), "name a SENTENCE, or two iterations"),
        ((*["--weights", work] * 3,), "give --weights twice"),
        ((1, "oracle", *["--weights", work] * 2), "give --weights twice"),
    ):
        code, out, error = nbest("diff", work, *words)
        assert (code, out) == (2, "")
        assert message in error
    assert nbest("diff", work, "--iterations", 1, 3)[0] == 1


def test_diff_of_weights(nbest: Run, work: Path) -> None:
    sides = ("--weights", "LM0= 1 TM0= 0", "--weights", work)
    code, out, _ = nbest("diff", work, *sides, "--refs", work.parent / "reference")
    lines = out.splitlines()
    assert code == 0
    assert lines[:2] == ["A: LM0= 1 TM0= 0", f"B: {work}"]
    assert re.fullmatch(r"BLEU of the 1-bests: 0\.\d+ to 0\.\d+ \(\+0\.\d+\)", lines[2])
    assert lines[3].startswith("3 sentences: the 1-best of 1 has other words")
    assert "  swing      LM0_0 +1.5000, TM0_0 +0.7500" in lines
    out = nbest("diff", work, 1, *sides)[1]
    head = next(line for line in out.splitlines() if line.startswith("feature"))
    assert head.split()[-3:] == ["lead", "B", "swing"]  # no counts of sentences
    document = json.loads(nbest("diff", work, 1, *sides, "--json")[1])
    assert [change["causes"][0]["feature"] for change in document["sentences"]] == ["LM0_0"]
    assert document["features"][0]["swing"] == 1.5


def test_grep(nbest: Run, work: Path) -> None:
    code, out, _ = nbest("grep", work, "DOG", "-i", "--max", 2)
    assert code == 0
    assert out.splitlines() == [
        "1\thypothesis\t0\tshe sees one dog",
        "1\thypothesis\t1\tshe sees a small dog",
    ]
    assert nbest("grep", work, "nothing like it")[0] == 1
    code, _, error = nbest("grep", work, "(", "--in", "hypothesis")
    assert code == 2
    assert "not a regular expression" in error
    assert nbest("grep", work, "x", "--in", "target")[0] == 2
    code, _, error = nbest("grep", work, "dog", "--in", "source")
    assert (code, "requires --source FILE" in error) == (2, True)


def test_stats(nbest: Run, work: Path) -> None:
    _, out, _ = nbest("stats", work)
    assert out.splitlines()[1].split()[:2] == ["LM0_0", "0.2500"]
    assert "6 distinct hypotheses, 0 sparse features" in out
    assert "iteration 2: 3 lists of 1 to 2 hypotheses" in out
    found = json.loads(nbest("stats", work, "--iteration", 1, "--json")[1])
    assert found["lists"]["hypotheses"] == 5
    assert found["coverage"]["ranks"] == [1, 2]


def test_maintenance_commands(nbest: Run, work: Path) -> None:
    other = work.parent / "other"
    assert nbest("verify", work)[:2] == (0, "2 iterations, 6 lists: no fault found\n")
    assert nbest("copy", work, other)[0] == 0
    assert nbest("drop", other, 1)[0] == 1
    assert nbest("drop", other, 2)[:2] == (0, "iteration 2 is removed\n")
    assert nbest("compact", other)[0] == 0
    assert json.loads(nbest("verify", other, "--json")[1]) == []
    assert len(json.loads(nbest("ls", other, "--json")[1])["iterations"]) == 1


def edit(work: Path, name: bytes, key: bytes, change: Callable[[bytes], bytes | None]) -> None:
    """Change a value of a store's database, or remove it."""
    with lmdb.open(str(work / "nbests.lmdb"), max_dbs=8, sync=False) as raw:
        database = raw.open_db(name, create=False)
        with raw.begin(write=True) as transaction:
            value = change(transaction.get(key, db=database))
            if value is None:
                transaction.delete(key, db=database)
            else:
                transaction.put(key, value, db=database)


def test_verify_reports_damaged_records(nbest: Run, work: Path) -> None:
    def flip(value: bytes) -> bytes:
        return value[:-9] + bytes([value[-9] ^ 1]) + value[-8:]

    edit(work, b"kbest", struct.pack(">II", 2, 1), flip)
    edit(work, b"statistics", struct.pack(">III", 0, 1, 0), flip)
    edit(work, b"iterations", struct.pack(">IB", 2, 2), lambda v: v[:14] + b"!" + v[15:])
    (work / "summary.json").write_text("damaged, too")
    code, out, error = nbest("verify", work)
    said = "is damaged: its checksum differs"
    assert (code, out.splitlines()) == (
        1,
        [
            f"iteration 1, sentence 0: the record of its statistics {said}",
            f"iteration 2: its record of the optimizer's result {said}",
            f"iteration 2, sentence 1: the record of its list {said}",
        ],
    )
    assert error == f"mosesplug: 3 faults in 2 iterations of {work}\n"
    found = json.loads(nbest("verify", work, "--json")[1])
    assert [(fault["iteration"], fault["sentence"]) for fault in found] == [
        (1, 0),
        (2, None),
        (2, 1),
    ]


def test_verify_reports_records_without_checksums(nbest: Run, work: Path) -> None:
    for area in (1, 2):
        key = struct.pack(">IBBII", 1, 8, area, 0, 0)
        edit(work, b"iterations", key, lambda value: None)
    assert nbest("verify", work)[:2] == (
        0,
        "2 iterations, 6 lists: no fault found\n"
        "6 of 20 records have no checksum: an earlier version wrote them\n",
    )


def test_export_and_import(nbest: Run, work: Path) -> None:
    directory = work.parent
    for number in (1, 2):
        assert (
            nbest("export", work, "--iteration", number, "-o", directory / f"list{number}")[0] == 0
        )
    assert nbest("export", work, "-o", directory / "all", "--format", "extractor")[0] == 0
    assert (directory / "all.features.dat").read_text().startswith("FEATURES_TXT_BEGIN_0 0 2 2 ")
    assert nbest("export", work, "-o", directory / "all.npz", "--format", "npz")[0] == 0
    lists = [directory / "list1", directory / "list2"]
    code, out, _ = nbest("import", *lists, directory / "new", "--refs", directory / "reference")
    assert code == 0
    assert out.splitlines()[1].startswith("iteration 2: 3 sentences, 4 hypotheses, 1 new, BLEU ")
    # A list that cannot be read leaves nothing behind.
    (directory / "list2").write_text("no list\n")
    code, _, error = nbest("import", *lists, directory / "bad", "--refs", directory / "reference")
    assert code == 1
    assert "list2" in error
    assert not (directory / "bad").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "work", "7"), 1),
        (("show", "work", "0", "--sort", "rank"), 2),
        (("show", "work", "0", "--iteration", "none"), 2),
        (("show", "work", "0", "--iteration", "3"), 1),
        (("ls", "nowhere"), 2),
        (("export", "work", "-o", "x", "--format", "xml"), 2),
        (("import", "list", "--refs", "reference"), 2),
    ],
)
def test_errors_are_one_line(
    words: tuple[str, ...], code: int, nbest: Run, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work.parent)
    found, out, error = nbest(*words)
    assert (found, out) == (code, "")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("encoding", "errors"), [("ascii", "strict"), ("utf-8", "strict"), ("utf-8", "surrogateescape")]
)
def test_bytes_that_are_not_utf_8(
    encoding: str, errors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reference").write_bytes(b"das \xfcber\n")
    lines = b"".join(
        b"0 ||| das %s \xc3\xbc ||| L\xff= -1 S\xfe_x= 1 ||| -1\n" % word
        for word in (b"\xfc", b"b")
    )
    (tmp_path / "list").write_bytes(lines)
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> bytes:
        out = io.TextIOWrapper(io.BytesIO(), encoding, errors)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            with pytest.raises(SystemExit) as end:
                main(["nbest", *words])
        assert not end.value.code
        out.flush()
        return out.buffer.getvalue()  # type: ignore[attr-defined,no-any-return]

    said("import", "list", "store", "--refs", "reference", "--quiet")
    assert b"das " in said("show", "store", "0", "--features")
    assert b"\tfeature\t" in said("grep", "store", "S", "--in", "feature")
    found = json.loads(said("show", "store", "0", "--json"))
    assert found["hypotheses"][0]["text"] == "das \ufffd ü"
    assert found["names"] == ["L\ufffd_0"]
    assert list(found["hypotheses"][0]["sparse"]) == ["S\ufffd_x"]
    hits = json.loads(said("grep", "store", "S", "--in", "feature", "--json"))
    assert hits[0]["text"] == "S\ufffd_x"


def test_run_whose_lists_lie_in_shards(nbest: Run, tmp_path: Path) -> None:
    known = ListFigures(0.25, 3, 30, 20)
    work = make_run(tmp_path / "work", lists=((), ()), shards=known)
    (work / "shard.1").mkdir()
    line = json.loads(nbest("ls", work, "--json")[1])["iterations"][0]
    assert (line["score"], line["sentences"]) == (0.25, 3)
    assert (line["hypotheses"], line["new_hypotheses"], line["oracle"]) == (30, 20, None)
    commands: list[tuple[object, ...]] = [("show", work, 0), ("diff", work, 0), ("stats", work)]
    commands += [("grep", work, "the"), ("export", work, "-o", tmp_path / "x")]
    for words in commands:
        code, out, error = nbest(*words)
        assert (code, out) == (1, "")
        assert error.endswith(f"name one of them, as {work / 'shard.1'}\n")
    assert not (tmp_path / "x").exists()
    assert nbest("verify", work)[1] == "2 iterations, 0 lists: no fault found\n"


def test_sentence_without_a_list(nbest: Run, tmp_path: Path) -> None:
    work = make_run(tmp_path / "work", lists=(LISTS[0][:2],))
    code, out, error = nbest("diff", work, 2)
    assert (code, out) == (1, "")
    assert "sentence 2 has no hypotheses" in error
    assert nbest("verify", work)[1] == "1 iteration, 1 list: no fault found\n"


def test_looking_at_a_sentence_needs_no_kernel(work: Path) -> None:
    program = (
        "import sys\nfrom mosesplug.cli.main import main\n"
        f"try:\n    main(['nbest', 'show', {str(work)!r}, '1'])\n"
        "except SystemExit:\n    assert 'numba' not in sys.modules, 'Numba is loaded'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_export_as_a_table(nbest: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    path, expected = work.parent / "x.parquet", work.parent / "y.parquet"
    words = ("export", work, "--format", "parquet", "-o", path)
    for options, hypotheses in (
        ((), open_run(work).hypotheses()),
        (("--iteration", 2, "--sentence", 1), open_run(work).hypotheses(2, [1])),
    ):
        assert nbest(*words, *options) == (0, "", "")
        hypotheses.to_parquet(expected)
        assert path.read_bytes() == expected.read_bytes()
    path.unlink()
    monkeypatch.setattr("mosesplug.api.tables.table.find_spec", lambda name: None)
    code, _, error = nbest(*words)
    assert (code, path.exists()) == (2, False)
    assert error.endswith("pip install 'mosesplug[frames]'\n")


@pytest.mark.parametrize("name", ["ls", "show", "diff", "grep", "stats", "export", "verify"])
def test_help_has_an_example(name: str, nbest: Run) -> None:
    assert f"Example: mosesplug nbest {name}" in " ".join(nbest(name, "--help")[1].split())
