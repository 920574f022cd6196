"""Commands that change the texts of hypotheses before scoring."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from formats.nbest.block import NBestList
from mosesplug.errors import DecoderError, UsageError
from mosesplug.learning.lists.blocks import read_list_blocks
from mosesplug.learning.lists.transforming import join_subwords
from mosesplug.settings.lists import ListSettings

SENTENCES = 400


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("formats.nbest.files.read_nbest_blocks.__kwdefaults__", {
        "names": None, "dense": None, "block_bytes": 1000,
    })  # fmt: skip
    path = Path("list")
    lines = [f"{n} ||| the ho@@ use {n}@@ ||| A= {n} ||| 0 ||| 0-{n}\n" for n in range(SENTENCES)]
    path.write_text("".join(lines))
    return path


def read(path: Path, command: str, derive: Sequence[str] = ()) -> list[NBestList]:
    settings = ListSettings(transform=command, derive=tuple(derive))
    return [block for blocks in read_list_blocks([path, path], settings) for block in blocks]


def texts(blocks: list[NBestList]) -> list[str]:
    return [block.text(row).decode() for block in blocks for row in range(len(block))]


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("tr a-z A-Z", "THE HO@@ USE {}@@"),
        ("bpe", "the house {}"),
        ("sed 's/@@ //g; s/@@$//; s/^/  /'", "the house {}"),
        # It reads all before it writes anything.
        (f"{sys.executable} -c 'import sys; sys.stdout.writelines(list(sys.stdin))'", None),
    ],
)
def test_texts_are_what_the_command_writes(command: str, form: str | None, lists: Path) -> None:
    blocks = read(lists, command, derive=("n=words",))
    assert len(blocks) > 10
    expected = [(form or "the ho@@ use {}@@").format(n) for n in range(SENTENCES)] * 2
    assert texts(blocks) == expected
    # Features are those of the lists as they are, and so is what follows the scores.
    assert {value for block in blocks for value in block.dense[:, 1].tolist()} == {4.0}
    extras = [block.extra(row) for block in blocks for row in range(len(block))]
    assert extras == [b" 0-%d" % n for n in range(SENTENCES)] * 2


def test_a_script_is_called_by_its_path(lists: Path) -> None:
    script = Path("script")
    script.write_text("#!/bin/sh\nexec cut -c 1-3\n")
    script.chmod(0o755)
    assert set(texts(read(lists, "script"))) == {"the"}


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("head -n 3", "'head -n 3' wrote 3 lines for 400: it must write one line for each"),
        ("sed p", "wrote 800 lines for 400"),
        ("sed s/a/b/ && echo", "wrote 401 lines for 400"),
        ("echo no >&2; exit 3", "the command of --transform ended with exit code 3"),
        ("echo no >&2; exit 3", "last messages:\nno"),
        ("no-such-program x", "ended with exit code 127"),
    ],
)
def test_commands_that_fail(command: str, message: str, lists: Path) -> None:
    with pytest.raises(DecoderError) as error:
        read(lists, command)
    assert message in str(error.value)


def test_a_command_must_be_one() -> None:
    with pytest.raises(UsageError, match=r"--transform nothing: not a file. Give a script"):
        ListSettings(transform="nothing")


def test_subwords() -> None:
    assert join_subwords(b"a@@ b c@@ d@@ e f@@") == b"ab cde f"
    assert join_subwords(b"") == b""
