"""File names with blanks, quotes and line ends work; where a moses.ini has none, it is said.

So do lists that are no UTF-8, in everything that shows them.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.moses.ini import explain_unfit_value, parse_moses_ini, with_weights
from formats.nbest.block import NBestList
from formats.nbest.files import read_nbest
from formats.weights.files import ShowWeights, WeightGroup
from tests.long_running.decoder_faults import System, begin, kept, make_system, run

_ODD = "a \"b' c\nd $x;*é"


@pytest.fixture
def system(tmp_path: Path) -> System:
    """One in such a directory."""
    return make_system(tmp_path / _ODD)


def told(words: list[str]) -> str:
    """Return the output of a command that must succeed."""
    code, said = run(words)
    assert code == 0, said
    return said


@pytest.mark.usefixtures("figures_without_svg")
def test_a_whole_run(system: System) -> None:
    directory, work = system.directory, system.directory / "work 'dir\n2"
    for name, source in (("held out\n", "input"), ("held refs", "reference0")):
        (directory / name).write_bytes((directory / source).read_bytes())
    script = directory / "filter it"
    script.write_text('#!/bin/sh\nmkdir "$1" && cp "$2" "$1/moses.ini"\n')
    script.chmod(0o755)
    more = [f"--filter-command={shlex.quote(str(script))}", "--keep-extractor-files"]
    more += ["--heldout", str(directory / "held out\n"), str(directory / "held refs")]
    system.breaks("latin-1")
    told(system.arguments(work, "--max-iterations=1", *more))
    told(system.arguments(work, "--continue", *more))
    assert kept(work) == (2, 0)
    exported = directory / "ex\nport.gz"
    told(["report", str(work), "-o", str(directory / "re\nport.html")])
    told(["nbest", "show", str(work), "0"])
    told(["nbest", "grep", str(work), "nd"])
    told(["nbest", "export", str(work), "-o", str(exported), "--iteration=1"])
    texts = [[found.text(row) for row in range(60)] for found in _lists(work, exported)]
    assert texts[0] == texts[1]
    assert any(b"h\xfcnd\xff" in text for text in texts[0])
    told(["nbest", "copy", str(work), str(directory / "co\npy")])
    assert (work / "moses.ini").read_text().count(_ODD) == 0  # one comment, one line
    system.breaks("exits")
    code, said = run(system.arguments(work, "--continue", "--max-iterations=3", *more))
    assert code == 1
    command = said.partition("\ncommand: ")[2].partition("\nlast messages:")[0]
    assert shlex.split(command)[0] == str(directory / "decoder")


def _lists(work: Path, exported: Path) -> list[NBestList]:
    return [read_nbest(work / "run1.best10.out.gz"), read_nbest(exported)]


def test_shell_commands_see_the_list_only(system: System) -> None:
    work = system.directory / "work"
    told(system.arguments(work, "--transform=sed 's/hund/h u n d/'", "--max-iterations=1"))
    found = read_nbest(work / "run1.best10.out.gz")
    assert any(b"h u n d" in found.text(row) for row in range(len(found)))


def test_sparse_weights_cannot_lie_where_moses_finds_no_file(system: System) -> None:
    begin(system, system.directory / "dense")
    code, said = run(system.arguments(system.directory / "work", "--decoder-flags=-sparse"))
    assert code == 2
    assert "cannot have sparse weights: moses.ini would name a file in it" in said
    assert "a value ends with its line" in said


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("/a b/c'\"d", None),
        ("", None),
        ("/a\nb", "ends with its line"),
        ("/a#b", "begins a comment"),
        ("/a ", "are stripped"),
        ("[a]", "begin a section"),
    ],
)
def test_values_of_a_configuration(value: str, why: str | None) -> None:
    ini = parse_moses_ini(b"[feature]\nLM\n[weight]\nLM0= 1\n", "moses.ini")
    show = ShowWeights((WeightGroup("LM0", (1.0,)),))
    if why is None:
        assert explain_unfit_value(value) is None
        written = parse_moses_ini(with_weights(ini, show, sparse_file=value), "moses.ini")
        assert [v.text for v in written.section("weight-file")] == ([value] if value else [])
        return
    assert why in str(explain_unfit_value(value))
    with pytest.raises(FormatError, match=r"moses.ini: \[weight-file\] cannot be set to"):
        with_weights(ini, show, sparse_file=value)
