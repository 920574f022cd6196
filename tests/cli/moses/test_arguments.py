"""Command lines in the three styles of Moses' programs."""

from __future__ import annotations

import getopt
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.cli.moses.arguments import Program, ProgramArguments, Style, run
from mosesplug.errors import DataError, UsageError
from mosesplug.options import Opt


@dataclass(frozen=True)
class Options(ProgramArguments):
    sctype: Annotated[str, Opt("the metric", short="s", metavar="NAME")] = "BLEU"
    scconfig: Annotated[str | None, Opt("its settings", short="c", metavar="SETTINGS")] = None
    pdim: Annotated[int | None, Opt("features", short="d")] = None
    rate: Annotated[float, Opt("decay", metavar="R")] = 0.5
    restarts: Annotated[int, Opt("starts", minimum=0)] = 1
    kind: Annotated[Literal["a", "b", "c"], Opt("method", metavar="KIND")] = "a"
    binary: Annotated[bool, Opt("binary files", short="b")] = False
    verbose: Annotated[bool, Opt("say more", short="v")] = False
    ffile: Annotated[tuple[str, ...], Opt("feature files", short="F", metavar="FILE")] = ()


@dataclass(frozen=True)
class Texts(Options):
    """The same options, all values read as text."""

    pdim: Annotated[str | None, Opt("features", short="d")] = None  # type: ignore[assignment]
    rate: Annotated[str, Opt("decay")] = ""  # type: ignore[assignment]
    restarts: Annotated[str, Opt("starts")] = ""  # type: ignore[assignment]
    kind: Annotated[str, Opt("method")] = ""  # type: ignore[assignment]


GETOPT = Program("tool", "Does things.", Options)
BOOST = Program("tool", "Does things.", Options, style=Style.BOOST)
ONE_DASH = Program("tool", "Does things.", Options, style=Style.ONE_DASH, others="binary FILE")
OTHERS = Program("tool", "Does things.", Options, others="FILE ...")


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
def test_values(program: Program[Options], line: str, expected: dict[str, object]) -> None:
    assert replace(program.parse(line.split()), given=()) == replace(Options(), **expected)


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
        ("--restarts -1", "--restarts must be at least 0, not -1"),
        ("--kind d", "--kind takes a, b or c, not 'd'"),
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
    assert GETOPT.parse(line).sctype == "TER"
    with pytest.raises(UsageError, match="--sctype is given 2 times"):
        BOOST.parse(line)


def test_order_and_other_arguments() -> None:
    read = OTHERS.parse(["a", "-s", "PER", "b", "-c", "x:1", "-s", "TER", "--", "-b"])
    assert read.given == (("sctype", "PER"), ("scconfig", "x:1"), ("sctype", "TER"))
    assert read.others == ("a", "b", "-b")


def test_one_dash() -> None:
    read = ONE_DASH.parse(["-pdim", "3", "-binary", "binary", "file", "-verbose"])
    assert read.pdim == 3
    assert read.binary is True
    assert read.verbose is False
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
    texts = Program("tool", "Does things.", Texts, others="FILE ...")
    options = texts.options
    long = [option.name + "=" * (option.kind != "flag") for option in options]
    names = {f"-{option.short}": option.name for option in options if option.short}
    names |= {f"--{option.name}": option.name for option in options}
    flags = {option.name for option in options if option.kind == "flag"}
    try:
        pairs, others = getopt.gnu_getopt(words, "s:c:d:bvF:h", long)
    except getopt.GetoptError:
        with pytest.raises(UsageError):
            texts.parse(words)
        return
    expected = [(names[name], names[name] in flags or value) for name, value in pairs]
    read = texts.parse(words)
    assert list(read.given) == expected
    assert list(read.others) == others


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
