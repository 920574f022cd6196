"""References: the files of a name, and their line counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.references import read_references, reference_files


def touch(directory: Path, *names: str, text: str = "one\ntwo\n") -> None:
    for name in names:
        (directory / name).write_text(text)


def names(directory: Path) -> list[str]:
    return [file.name for file in reference_files(directory / "dev.en")]


def test_the_rule_of_mert_moses(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"dev.en: no such reference.*numbered 0, 1, 2"):
        names(tmp_path)
    touch(tmp_path, "dev.en.ref0", "dev.en.ref1")
    assert names(tmp_path) == ["dev.en.ref0", "dev.en.ref1"]
    touch(tmp_path, "dev.en0", "dev.en1", "dev.en2")
    assert names(tmp_path) == ["dev.en0", "dev.en1", "dev.en2"]
    touch(tmp_path, "dev.en")
    assert names(tmp_path) == ["dev.en"]


def test_a_directory_is_not_a_reference(tmp_path: Path) -> None:
    (tmp_path / "ref").mkdir()
    with pytest.raises(FormatError, match="no such reference"):
        reference_files(tmp_path / "ref")
    (tmp_path / "ref0").write_text("a\n")
    assert reference_files(tmp_path / "ref") == [tmp_path / "ref0"]


def test_a_gap_is_rejected(tmp_path: Path) -> None:
    touch(tmp_path, "dev.en0", "dev.en2")
    with pytest.raises(FormatError, match=r"reference 1 of the prefix .* is missing"):
        names(tmp_path)


def test_lines_are_bytes_by_reference(tmp_path: Path) -> None:
    (tmp_path / "dev.en0").write_bytes(b"caf\xe9\n\nb")
    (tmp_path / "dev.en1").write_bytes(b"x\ny\nz\n")
    assert read_references(tmp_path / "dev.en") == [[b"caf\xe9", b"", b"b"], [b"x", b"y", b"z"]]


def test_windows_line_ends_are_not_part_of_words(tmp_path: Path) -> None:
    (tmp_path / "dev.en").write_bytes(b"a b .\r\n\r\nc\rd")
    assert read_references(tmp_path / "dev.en") == [[b"a b .", b"", b"c\rd"]]


def test_line_counts_are_checked(tmp_path: Path) -> None:
    touch(tmp_path, "dev.en0", "dev.en1")
    assert len(read_references(tmp_path / "dev.en", 2)) == 2
    with pytest.raises(FormatError, match=r"dev.en0: 2 lines, but dev.de has 3"):
        read_references(tmp_path / "dev.en", 3, input_path="dev.de")
    touch(tmp_path, "dev.en1", text="one\n")
    with pytest.raises(FormatError, match=r"dev.en1: 1 lines, but .*dev.en0 has 2"):
        read_references(tmp_path / "dev.en")


def test_texts_without_a_sentence_are_rejected(tmp_path: Path) -> None:
    touch(tmp_path, "dev.en", text="")
    for n_lines in (None, 0):
        with pytest.raises(FormatError, match="the file has no sentences"):
            read_references(tmp_path / "dev.en", n_lines)


def test_recorded_references(recordings: Path) -> None:
    four = read_references(recordings / "hindi-4ref" / "dev.en")
    assert [len(lines) for lines in four] == [500] * 4
    one = read_references(recordings / "multi30k-de-en" / "text" / "dev.en", 1014)
    assert len(one) == 1


def test_transcripts_begin_with_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "ref.trn"
    path.write_text(";; comment\nthe house (utt-b)\r\n(utt-a)\n")
    assert read_references(path) == [[b"utt-b the house", b"utt-a "]]
    path.write_text("the house (utt-b)\nyes\n")
    with pytest.raises(FormatError, match=r"ref.trn:2: the line does not end in an id in paren"):
        read_references(path)
    for text, expected in (
        ("the house (utt-b)\nyes (utt-a)\n", [b"utt-b the house", b"utt-a yes"]),
        ("yes (laughs)\nno (laughs)\n", [b"yes (laughs)", b"no (laughs)"]),
        ("the house (utt-b)\nyes\n", [b"the house (utt-b)", b"yes"]),
        ("the house (big)\n", [b"the house (big)"]),
    ):
        path = tmp_path / "ref"
        path.write_text(text)
        assert read_references(path) == [expected]
