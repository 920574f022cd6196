"""What holds for every command: harmless terminals, tables of any width, layouts of tables.

No text that comes from data can change a terminal, whichever command shows it. Commands whose
output is data write it unchanged into pipes.
"""

from __future__ import annotations

import csv
import importlib
import json
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
import typer.main
from rich.cells import cell_len

from mosesplug.cli import application
from mosesplug.cli.main import main
from mosesplug.cli.moses.install import TOOLKITS, find_toolkit
from tests.cli.inspect.test_forest import NAMES, edge
from tests.cli.terminal import run_on_terminal
from tests.cli.test_help import commands

# Title and clipboard of a terminal, a color that no table has, carriage return, backspace, DEL, C1
# in UTF-8 and as a byte, an override of the writing direction and an isolate.
HOSTILE = (
    b"w \x1b]0;owned\x07 \x1b]52;c;b3duZWQ=\x07 \x1b[38;5;123mred over\r \x08\x7f \xc2\x9b31m"
    b" \x9b31m \xe2\x80\xae rtl \xe2\x81\xa6x"
)
WORD = b"".join(HOSTILE.split(b" "))
FEATURE = b"sw_\x7f\xc2\x9b31m\x9b31m\xe2\x80\xae"
"""In the format of Moses, blanks include all other control characters."""

OWN_CODES = re.compile(rb"\x1b\[(?!38;5;123)[\d;]*m|\x1b\[\?25[lh]|\r?\x1b\[[012]?K|\x1b\[1A|\r")
"""What mosesplug itself sends to a terminal: styles, and the codes of progress bars."""
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

CALLS = {
    "tune": "tune source refs bad-decoder moses.ini --working-dir new",
    "mert-moses": "mert-moses source refs bad-decoder moses.ini --working-dir new",
    "ask": "ask new refs weights",
    "tell": "tell asked other-list",
    "settings": "settings algorithm",
    "optimize": "optimize --nbest list --refs refs --algorithm kbmira --threads 1",
    "algorithms": "algorithms kbmira",
    "metrics": "metrics",
    "plugins": "plugins",
    "bench-optimizers": "bench-optimizers list --refs refs --algorithms kbmira --seeds 1",
    "experiment": "experiment experiment.toml --dry-run",
    "check": "check source refs --nbest list",
    "oracle": "oracle list --refs refs -o -",
    "mbr": "mbr --nbest list",
    "rerank": "rerank --nbest list --weights weights",
    "nbest ls": "nbest ls store",
    "nbest show": "nbest show store 0 --refs refs --source source --features",
    "nbest diff": "nbest diff store 0 1 2 --refs refs --source source",
    "nbest grep": "nbest grep store .",
    "nbest stats": "nbest stats store",
    "nbest export": "nbest export store -o -",
    "nbest import": "nbest import list new --refs refs",
    "nbest verify": "nbest verify store",
    "nbest compact": "nbest compact store",
    "nbest copy": "nbest copy store new",
    "nbest drop": "nbest drop store 2",
    "weights show": "weights show weights",
    "weights diff": "weights diff weights other-weights",
    "weights why": "weights why store 0 --refs refs --source source",
    "weights average": "weights average weights other-weights --to tsv",
    "weights interpolate": "weights interpolate weights other-weights --at 0.5 --to tsv",
    "weights normalize": "weights normalize weights --to tsv",
    "weights convert": "weights convert weights --to tsv",
    "line": "line store --direction LM0",
    "score": "score ids-hyp ids-refs --ids --sentences",
    "compare": "compare A=refs B=hyp --refs refs --analysis --trials 10 --samples 10",
    "report": "report store --refs refs --source source -o page.html",
    "forest nbest": "forest nbest graphs",
    "forest oracle": "forest oracle graphs --refs graph-refs",
    "forest info": "forest info graphs",
    "forest errors": "forest errors graphs --refs graph-refs --sentences",
    "install-tools": "install-tools new",
    "warm-up": "warm-up --help",
    "cache": "cache",
}
"""A call of each command that shows texts of data, if any command line of it does."""

DATA = {
    "oracle",
    "nbest export",
    "optimize",
    "mbr",
    "rerank",
    "weights average",
    "weights interpolate",
    "weights normalize",
    "weights convert",
    "forest nbest",
    "forest oracle",
}
"""Commands that write data to stdout."""


@pytest.fixture(scope="module")
def hostile_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of all commands, full of control characters."""
    from formats.graphs.hypergraph import Edge, write_hypergraph, write_hypergraph_weights

    root = tmp_path_factory.mktemp("hostile")
    texts = [HOSTILE, HOSTILE + b" two", b"three"]
    (root / "source").write_bytes(b"".join(text + b"\n" for text in texts))
    (root / "refs").write_bytes(b"".join(text + b"\n" for text in texts))
    (root / "hyp").write_bytes(b"".join(text + b" more\n" for text in texts))
    lines = [
        b"%d ||| %b%b ||| LM0= %d TM0= 1 %b= %d ||| -1\n"
        % (number, text, end, value, FEATURE, value)
        for number, text in enumerate(texts)
        for value, end in ((-1, b" a"), (-2, b""))
    ]
    (root / "list").write_bytes(b"".join(lines))
    (root / "other-list").write_bytes(b"".join(lines).replace(b"LM0=", b"LM" + FEATURE[3:] + b"="))
    weights = b"LM0 %d\nTM0 1\n" + FEATURE + b" 0.5\n"
    (root / "weights").write_bytes(weights % 1)
    (root / "other-weights").write_bytes(weights % 2)
    for name in ("hyp", "refs"):
        found = (root / name).read_bytes().splitlines()
        numbered = (WORD + b"%d " % place + text + b"\n" for place, text in enumerate(found))
        (root / f"ids-{name}").write_bytes(b"".join(numbered))
    (root / "moses.ini").write_text(
        "[feature]\nDistortion\nLM\n[weight]\nDistortion0= 0.3\nLM0= 0.5\n"
    )
    text = 'input = "source"\nrefs = "refs"\n'
    (root / "experiment.toml").write_text(
        'baseline = "kbmira"\nsettings = { decoder = "bad-decoder" }\n'
        f'[features.dense]\nconfig = "moses.ini"\n[tuning.all]\n{text}[tests.all]\n{text}'
        "[systems.kbmira]\n"
    )
    program = root / "bad-decoder"
    program.write_bytes(b"#!/bin/sh\ncat >&2 <<'END'\n%b\nEND\nexit 3\n" % HOSTILE)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    graphs = root / "graphs"
    graphs.mkdir()
    nodes = [
        [Edge((b"<s>",), 0)],
        [edge(0, *HOSTILE.split(b" "), lm=-1.0)],
        [edge(1, b"x", lm=-2.0), edge(1, b"y", lm=-3.0)],
        [Edge((2, b"</s>"), 2)],
    ]
    write_hypergraph(graphs / "0.gz", NAMES, nodes)
    write_hypergraph_weights(graphs / "weights", NAMES, [1.0, 2.0, 0.5, 0.25])
    (root / "graph-refs").write_bytes(HOSTILE + b" x\n")
    for words in (
        ["nbest", "import", "list", "list", "store", "--refs", "refs", "--source", "source"],
        ["ask", "asked", "refs", "weights"],
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(root)
            with pytest.raises(SystemExit) as end:
                main([*words, "--quiet"])
            assert not end.value.code
    return root


@pytest.fixture
def directory(hostile_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of these inputs that a command may change; the current directory."""
    copy = Path(shutil.copytree(hostile_files, tmp_path / "copy"))
    monkeypatch.chdir(copy)
    return copy


def test_each_command_has_a_call() -> None:
    assert {" ".join(words) for words in commands()} == set(CALLS)


@pytest.mark.parametrize("command", [*CALLS])
def test_control_characters_do_not_reach_a_terminal(
    command: str,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Neither directly, nor, as far as the output is for people, through a pager."""
    code, shown = run_on_terminal(CALLS[command].split(), monkeypatch, capfd)
    _check_harmless(OWN_CODES.sub(b"", shown))
    assert code == (1 if command in {"tune", "mert-moses", "tell"} else 0), shown


@pytest.mark.parametrize(
    ("module", "function"),
    sorted({entry for name in TOOLKITS for entry in find_toolkit(name).launchers.values()}),
)
def test_other_programs_escape_their_messages(
    module: str, function: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        getattr(importlib.import_module(module), function)([HOSTILE.decode("utf-8", "ignore")])
    assert end.value.code
    output, messages = capfd.readouterr()
    assert output == ""
    assert not HARMFUL.findall(messages)


@pytest.mark.parametrize("command", [*CALLS])
def test_pipes_get_data_unchanged_and_the_rest_escaped(
    command: str, directory: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(SystemExit):
        main(CALLS[command].split())
    output, messages = capfdbinary.readouterr()
    _check_harmless(messages)
    if command in DATA:
        # Minimum Bayes risk joins the words of a hypothesis.
        assert any(text in output for text in (HOSTILE, b" ".join(HOSTILE.split()), FEATURE))
    else:
        _check_harmless(output)


def test_json_has_the_text_itself(
    directory: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(SystemExit):
        main(["nbest", "show", "store", "0", "--json"])
    texts = [each["text"] for each in json.loads(capfdbinary.readouterr().out)["hypotheses"]]
    assert HOSTILE.decode("utf-8", "replace") + " a" in texts


def list_table_commands() -> list[str]:
    """Return the commands that take a layout of tables."""
    found = []
    for words in commands():
        command: Any = typer.main.get_command(application._application)
        for word in words:
            command = command.get_command(None, word)
        if any("--table-format" in each.opts for each in getattr(command, "params", ())):
            found.append(" ".join(words))
    return found


TABLES = [name for name in list_table_commands() if "--help" not in CALLS[name]]
CALLS_OF_TABLES = CALLS | {
    "oracle": "oracle list --refs refs",
    "optimize": "optimize --nbest list --refs refs --algorithm kbmira --threads 1 -o new --folds 2",
    "algorithms": "algorithms",
    "bench-optimizers": CALLS["bench-optimizers"] + " --quiet",
}


def run_in_layout(name: str, layout: str, capfd: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Run a command that prints tables in a layout; return its output and its messages."""
    calls = CALLS_OF_TABLES[name].split()
    with pytest.raises(SystemExit) as end:
        main([*calls, "--table-format", layout])
    output, messages = capfd.readouterr()
    assert not end.value.code, messages
    return output, messages


def split_tables(output: str, separator: str) -> list[list[list[str]]]:
    """Return the tables of an output: rows of cells."""
    parts = output.strip("\n").split("\n\n")
    return [[*csv.reader(part.split("\n"), delimiter=separator)] for part in parts if part]


@pytest.mark.parametrize("name", [name for name in TABLES if name != "tune"])
def test_tables_in_every_layout(
    name: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The rows of a table have as many cells as its head, and nothing else is on stdout."""
    document, _ = run_in_layout(name, "json", capfd)
    json.loads(document)
    _clean(directory)
    output, _ = run_in_layout(name, "csv", capfd)
    for head, *rows in split_tables(output, ","):
        assert {len(row) for row in rows} <= {len(head)}
    _clean(directory)
    tabs, _ = run_in_layout(name, "tsv", capfd)
    assert [len(table) for table in split_tables(tabs, "\t")] == [
        len(table) for table in split_tables(output, ",")
    ]
    _clean(directory)
    marked, _ = run_in_layout(name, "markdown", capfd)
    n_tables = len(re.findall(r"^\|(:?--:?\|)+$", marked, re.M))
    assert n_tables >= len(split_tables(output, ","))  # and some that are empty


# As text, grep prints lines with tabs.
@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("tune", "nbest grep")])
def test_tables_keep_all_columns_on_any_terminal(
    name: str,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    tables = split_tables(run_in_layout(name, "tsv", capfd)[0], "\t")
    for columns in (60, 80, 120):
        _clean(directory)
        words = CALLS_OF_TABLES[name].split()
        code, output = run_on_terminal(words, monkeypatch, capfd, columns)
        assert code == 0
        shown = OWN_CODES.sub(b"", output).decode()
        joined = "".join(shown.split())
        for head, *rows in tables:
            # Columns of numbers, and one without a head, are never broken.
            for column in head:
                assert "".join(column.split()) in joined
            for row in rows:
                assert all(cell in shown for cell in row if re.fullmatch(r"[-+]?[0-9.]+%?", cell))
        for part in shown.split("\n\n"):
            lines = part.strip("\n").split("\n")
            if len(lines) > 1 and set(lines[1]) == {"─"}:
                assert max(map(cell_len, lines)) <= columns


def _clean(directory: Path) -> None:
    """Remove what a command has made, so that it can be called again."""
    for path in directory.glob("new*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _check_harmless(output: bytes) -> None:
    """Check that output holds no control character, and no byte of no character."""
    assert not HARMFUL.findall(output.decode("utf-8", "surrogateescape")), output
