"""Command lines in the three styles of Moses' programs."""

from __future__ import annotations

import getopt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.cli.moses.arguments import (
    Program,
    ProgramOption,
    Style,
    parse_integer,
    parse_real,
    run,
)
from mosesplug.errors import DataError, UsageError

OPTIONS = (
    ProgramOption("sctype", "the metric", short="s", value="NAME", default="BLEU"),
    ProgramOption("scconfig", "its settings", short="c", value="SETTINGS"),
    ProgramOption("pdim", "features", short="d", value="N", convert=parse_integer),
    ProgramOption("rate", "decay", value="R", convert=parse_real, default=0.5),
    ProgramOption("binary", "binary files", short="b"),
    ProgramOption("verbose", "say more", short="v"),
    ProgramOption("ffile", "feature files", short="F", value="FILE", is_repeatable=True),
)
GETOPT = Program("tool", "Does things.", OPTIONS)
BOOST = Program("tool", "Does things.", OPTIONS, style=Style.BOOST)
ONE_DASH = Program("tool", "Does things.", OPTIONS, style=Style.ONE_DASH, others="binary FILE")
OTHERS = Program("tool", "Does things.", OPTIONS, others="FILE ...")


@pytest.mark.parametrize("program", [GETOPT, BOOST])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-d14", {"pdim": 14}),
        ("-d 14", {"pdim": 14}),
        ("-d -14", {"pdim": -14}),
        ("-bvd14", {"pdim": 14, "binary": True, "verbose": True}),
        ("-vb -d 14", {"pdim": 14, "binary": True, "verbose": True}),
        ("--pdim=14", {"pdim": 14}),
        ("--pdim 14", {"pdim": 14}),
        ("--p 14 --bin", {"pdim": 14, "binary": True}),
        ("--scconfig=case:true,x:a=b", {"scconfig": "case:true,x:a=b"}),
        ("-s=x", {"sctype": "=x"}),
        ("--rate 1e-3", {"rate": 0.001}),
        ("-F a --ffile b -Fc", {"ffile": ("a", "b", "c")}),
        ("-s PER --", {"sctype": "PER"}),
        ("--sctype=", {"sctype": ""}),
        ("", {}),
    ],
)
def test_values(program: Program, line: str, expected: dict[str, object]) -> None:
    absent = {option.name: option.missing_value for option in OPTIONS} | {"help": False}
    assert dict(program.parse(line.split()).values) == absent | expected
    assert absent["sctype"] == "BLEU"
    assert absent["binary"] is False


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--nothing", "unknown option --nothing"),
        ("--nothing=3", "unknown option --nothing "),
        ("-x", "unknown option -x"),
        ("-bx", "unknown option -x"),
        ("--sc PER", "--sc may be any of --sctype, --scconfig"),
        ("--=3", "unknown option --"),
        ("-d", "-d needs a value: N"),
        ("--pdim", "--pdim needs a value: N"),
        ("--binary=yes", "--binary takes no value"),
        ("-d 1.5", "-d takes a whole number, not '1.5'"),
        ("--rate nan", "--rate takes a number, not 'nan'"),
        ("--rate half", "--rate takes a number, not 'half'"),
        ("file -b", "'file' belongs to no option"),
        ("-b -- -b", "'-b' belongs to no option"),
        ("-", "'-' belongs to no option"),
    ],
)
def test_complaints(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        GETOPT.parse(line.split())
    assert message in str(caught.value)


def test_twice() -> None:
    line = ["-s", "PER", "-s", "TER"]
    assert GETOPT.parse(line)["sctype"] == "TER"
    with pytest.raises(UsageError, match="--sctype is given 2 times"):
        BOOST.parse(line)


def test_order_and_other_arguments() -> None:
    read = OTHERS.parse(["a", "-s", "PER", "b", "-c", "x:1", "-s", "TER", "--", "-b"])
    assert read.options == (("sctype", "PER"), ("scconfig", "x:1"), ("sctype", "TER"))
    assert read.others == ("a", "b", "-b")


def test_one_dash() -> None:
    read = ONE_DASH.parse(["-pdim", "3", "-binary", "binary", "file", "-verbose"])
    assert read["pdim"] == 3
    assert read["binary"] is True
    assert read["verbose"] is False
    assert read.others == ("binary", "file", "-verbose")
    with pytest.raises(UsageError, match="unknown option -pd"):
        ONE_DASH.parse(["-pd", "3"])


WORDS = st.sampled_from(
    [
        *("-b", "-v", "-bv", "-d", "-d14", "-bd", "7", "-s", "--", "-", "file", "--pdim", "-Fx"),
        *("--pd=3", "--binary", "--b", "--sc", "--sctype", "--ffile", "--help", "--verbose=1"),
        *("-z",),
    ]
)


@given(st.lists(WORDS, max_size=7))
def test_same_as_the_standard_library(words: list[str]) -> None:
    """Python's own GNU getopt accepts the same lines and finds the same options in them."""
    long = [option.name + ("=" if option.value else "") for option in OPTIONS]
    names = {f"-{option.short}": option.name for option in OPTIONS if option.short}
    names |= {f"--{option.name}": option.name for option in OPTIONS} | {"-h": "help"}
    flags = {option.name for option in OPTIONS if not option.value} | {"help"}
    try:
        pairs, rest = getopt.gnu_getopt(words, "s:c:d:bvF:h", [*long, "help"])
        expected = [
            (names.get(name, "help"), True if names.get(name, "help") in flags else value)
            for name, value in pairs
        ]
    except getopt.GetoptError:
        with pytest.raises(UsageError):
            _text(OTHERS).parse(words)
        return
    read = _text(OTHERS).parse(words)
    assert list(read.options) == expected
    assert list(read.others) == rest


def _text(program: Program) -> Program:
    """The program with all values read as text."""
    options = (
        ProgramOption(
            o.name, o.help, o.short, o.value, default=o.default, is_repeatable=o.is_repeatable
        )
        for o in program.options
    )
    return Program(program.name, program.summary, tuple(options), others=program.others)


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(GETOPT, lambda arguments: pytest.fail("help does nothing else"), ["-b", "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: tool [options]\n\nDoes things.\n")
    assert "  --sctype, -s NAME           the metric (default BLEU)\n" in text
    assert "  --ffile, -F FILE            feature files (may be given several times)\n" in text
    assert "  --help, -h " in text
    assert max(map(len, text.splitlines())) < 100


def test_endings(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(arguments: object) -> None:
        raise DataError("the data are odd")

    for words, code, message in (
        (["--nothing"], 2, "tool: unknown option --nothing (tool --help lists them)\n"),
        ([], 1, "tool: the data are odd\n"),
    ):
        with pytest.raises(SystemExit) as caught:
            run(GETOPT, fail, words)
        assert caught.value.code == code
        assert capsys.readouterr().err == message
