"""The extractor program against Moses' own output, byte for byte."""

from __future__ import annotations

import filecmp
from pathlib import Path

import numpy as np
import pytest

from formats.extractor.reader import read_features, read_scores
from formats.text import read_bytes, read_lines
from mosesplug.cli.moses.extractor import main
from mosesplug.moses_tools import distinct_lists

LIST = """\
0 ||| a b c d ||| LM0= -1 -2 ||| -1
0 ||| a b c d  ||| LM0= -1 -2 ||| -1
0 ||| a b x d ||| LM0= -1 -3 ||| -2
0 ||| a b ||| LM0= -1 -4 ||| -3
2 ||| e f g h ||| LM0= 0 -0.25 ||| 0
"""


def run(line: str, *words: object) -> int:
    """Exit code of the program, called with the words of a line and some more."""
    with pytest.raises(SystemExit) as caught:
        main([*line.split(), *map(str, words)])
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a list and references, made the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list").write_text(LIST)
    (tmp_path / "ref").write_text("a b c d\nnothing\nE f g h\n")
    return tmp_path


def test_by_hand(folder: Path) -> None:
    assert run("-n list -r ref") == 0
    assert (folder / "features.data").read_text() == (
        "FEATURES_TXT_BEGIN_0 0 3 2 LM0_0 LM0_1 \n"
        "-1 -2 \n-1 -4 \n-1 -3 \n"
        "FEATURES_TXT_END_0\n"
        "FEATURES_TXT_BEGIN_0 2 1 2 LM0_0 LM0_1 \n"
        "0 -0.25 \n"
        "FEATURES_TXT_END_0\n"
    )
    assert (folder / "statscore.data").read_text() == (
        "SCORES_TXT_BEGIN_0 0 3 9 BLEU\n"
        "4 4 3 3 2 2 1 1 4 \n2 2 1 1 0 0 0 0 4 \n3 4 1 3 0 2 0 1 4 \n"
        "SCORES_TXT_END_0\n"
        "SCORES_TXT_BEGIN_0 2 1 9 BLEU\n"
        "3 4 2 3 1 2 0 1 4 \n"
        "SCORES_TXT_END_0\n"
    )


def test_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-dv1 --sct PER -c case:false -n list -rref -S s -F f") == 0
    assert read_scores("s").stats.tolist() == [[4, 4, 4], [4, 4, 4], [3, 4, 4], [2, 2, 4], [4] * 3]
    assert "PER: 5 of 5 hypotheses written, of 2 sentences\n" in capsys.readouterr().err
    assert run("-n list -r ref -S s -F f --filter", "tr x c") == 0
    assert read_scores("s").stats[:, 0].tolist() == [4, 2, 4, 3]


def test_earlier_iterations_come_first(folder: Path) -> None:
    """Old rows, then new ones, then duplicates removed; a new sentence goes to the end."""
    (folder / "second").write_text(
        "0 ||| a b ||| LM0= -1 -4 ||| 0\n0 ||| a ||| LM0= 5 5 ||| 0\n1 ||| x ||| LM0= 1 1 ||| 0\n"
    )
    assert run("-n list -r ref -F f1 -S s1 -b") == 0
    assert run("-n second -r ref --prev-ffile f1 --prev-scfile s1 --ffile f2 --scfile s2") == 0
    features = read_features("f2")
    assert features.sentence_ids.tolist() == [0, 2, 1]
    assert features.offsets.tolist() == [0, 4, 5, 6]
    assert features.dense.tolist() == [[-1, -2], [-1, -4], [-1, -3], [5, 5], [0, -0.25], [1, 1]]
    assert run("-E f1,f2 -R s1,s2 -F f3 -S s3") == 0
    assert np.array_equal(np.sort(read_features("f3").dense), np.sort(features.dense))


def test_sparse_features_of_earlier_iterations_keep_their_names(folder: Path) -> None:
    (folder / "sparse").write_text("0 ||| a ||| LM0= 1 1 WT_a~b= 2 ||| 0\n")
    assert run("-n sparse -r ref -F f1 -S s1") == 0
    assert run("-n list -r ref -E f1 -R s1 -F f2 -S s2") == 0
    assert read_lines("f2")[1] == b"1 1 WT_a~b=2 "
    assert run("-b -E f1 -R s1 -F f2 -S s2") == 1


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("", 2, "no n-best lists are given"),
        ("-n list", 2, "--reference is needed"),
        ("-n list -r ref -E f", 2, "1 files in --prev-ffile and 0"),
        ("-n list -r ref --scfile=", 2, "--scfile is empty"),
        ("-n list -r ref -s NIST", 2, "unknown metric 'NIST'"),
        ("-n list -r ref -c case:maybe", 2, "case:maybe"),
        ("-n list -r ref extra", 2, "'extra' belongs to no option"),
        ("-n list -r absent", 1, "absent: cannot be read"),
        ("-n absent -r ref", 1, "absent: cannot be read"),
        ("-n ref -r ref", 1, "ref:1: "),
        ("-n list -r ref,short", 1, "lines"),
        ("-n list -r short", 1, "list:5: there is no reference for sentence 2"),
        ("-n list -r ref -F absent/f", 1, "absent"),
        ("-n list -r ref --filter false", 1, "the filter"),
        ("-n list -r ref -f 1", 1, "factor 1 is selected"),
        ("-n list -r ref -E f -R s", 1, "s has statistics of PER, not of BLEU"),
    ],
)
def test_refusals(
    folder: Path, capsys: pytest.CaptureFixture[str], line: str, code: int, message: str
) -> None:
    (folder / "short").write_text("a\n")
    assert run("-n list -r ref -s PER -F f -S s") == 0
    capsys.readouterr()
    assert run(line) == code
    said = capsys.readouterr().err
    assert said.startswith("extractor: ")
    assert message in said
    assert not (folder / "features.data").exists()


@pytest.mark.parametrize("number", [1, 2])
def test_recorded_lists(multi30k: Path, tmp_path: Path, number: int) -> None:
    scores = multi30k / "scores"
    nbest = multi30k / "mert-work" / f"run{number}.best100.out.gz"
    features, statistics = tmp_path / "features.dat", tmp_path / "scores.dat"
    line = "--sctype BLEU --scconfig case:true -r"
    assert (
        run(line, multi30k / "text" / "dev.en", "-n", nbest, "-S", statistics, "-F", features) == 0
    )
    assert features.read_bytes() == read_bytes(scores / f"run{number}.features.dat.gz")
    assert statistics.read_bytes() == read_bytes(scores / f"run{number}.scores.dat.gz")


@pytest.mark.parametrize("flags", ["", "--binary", "--allow-duplicates"])
def test_lines_that_are_parsed_once(
    multi30k: Path,
    short_lists: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: str,
) -> None:
    """Several lists, whose lines repeat each other, give the files of lists parsed in full."""
    lists = ",".join(map(str, short_lists))
    line = f"{flags} -r {multi30k / 'text' / 'dev.en'} -n {lists}"
    monkeypatch.chdir(tmp_path)
    assert run(line, "-S", "scores", "-F", "features") == 0
    monkeypatch.setattr(distinct_lists, "FEW_BYTES", 1 << 40)
    assert run(line, "-S", "all.scores", "-F", "all.features") == 0
    for name in ("scores", "features"):
        assert filecmp.cmp(name, f"all.{name}", shallow=False)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("BLEU.scores.dat", ""),
        ("BLEU-nocase.scores.dat", "--scconfig case:false"),
        ("BLEU-TER.scores.dat", "--sctype BLEU,TER --scconfig weights:0.6+0.4"),
        ("PER.scores.dat", "--sctype PER"),
        ("WER.scores.dat", "--sctype WER"),
        ("CDER.scores.dat", "--sctype CDER"),
        ("TER.scores.dat", "--sctype TER"),
        ("BLEU.scores.bin", "--binary"),
    ],
)
def test_recorded_metrics(multi30k: Path, tmp_path: Path, name: str, line: str) -> None:
    first = multi30k / "scores" / "first100"
    features, statistics = tmp_path / "features", tmp_path / "scores"
    words = ["-r", f"{first}.ref", "-n", f"{first}.best100.gz", "-S", statistics, "-F", features]
    assert run(line, *words) == 0
    assert statistics.read_bytes() == read_bytes(f"{first}.{name}.gz")
    kind = "bin" if line == "--binary" else "dat"
    assert features.read_bytes() == read_bytes(f"{first}.features.{kind}.gz")


def test_recorded_sparse_features(multi30k: Path, tmp_path: Path) -> None:
    """Hypotheses that differ in sparse features alone are one, as in Moses."""
    reference = tmp_path / "ref"
    lines = read_lines(multi30k / "text" / "dev.en")[:60]
    reference.write_bytes(b"".join(line + b"\n" for line in lines))
    nbest = multi30k / "sparse" / "run.best100.out.gz"
    assert run("-r", reference, "-n", nbest, "-S", tmp_path / "s", "-F", tmp_path / "f") == 0
    assert (tmp_path / "f").read_bytes() == read_bytes(multi30k / "sparse" / "features.dat.gz")
    assert (tmp_path / "s").read_bytes() == read_bytes(multi30k / "sparse" / "scores.dat.gz")


@pytest.mark.parametrize("length", ["closest", "shortest", "average"])
def test_recorded_references(recordings: Path, tmp_path: Path, length: str) -> None:
    hindi = recordings / "hindi-4ref"
    references = ",".join(str(hindi / f"dev.en{number}") for number in range(3))
    words = ["-r", references, "-n", hindi / "dev.en3.nbest", "-S", tmp_path / "s"]
    assert run(f"--scconfig reflen:{length} -F", tmp_path / "f", *words) == 0
    assert filecmp.cmp(tmp_path / "s", hindi / f"scores.{length}.dat", shallow=False)
