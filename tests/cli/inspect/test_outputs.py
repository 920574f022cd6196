"""No command replaces a file that it reads, or writes two outputs to one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosesplug.cli.main import main

LISTS = """0 ||| the house is red ||| LM0= -1 TM0= -2 ||| -3
0 ||| the red house ||| LM0= -2 TM0= -2 ||| -4
1 ||| she sees a dog ||| LM0= -1 TM0= -1 ||| -2
1 ||| she sees one dog ||| LM0= -3 TM0= 0 ||| -3
"""
GRAPH = "# target ||| features ||| source-covered\n1 1\n1\nthe red house ||| LM0=-1 TM0=-2 ||| 0\n"
RERANK = "rerank --nbest list --weights weights"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """A directory with inputs of all commands, and what they hold."""
    monkeypatch.chdir(tmp_path)
    Path("list").write_text(LISTS)
    Path("weights").write_text("LM0= 1\nTM0= 0.5\n")
    Path("values").write_text("1\n2\n3\n4\n")
    for name in ("ref", "refs.0", "refs.1", "a", "b"):
        Path(name).write_text("the red house\nshe sees a dog\n")
    Path("0").write_text(GRAPH)
    return {path.name: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (f"{RERANK} -o list", "--output"),
        (f"{RERANK} -o ./weights", "--output"),
        (f"{RERANK} --add-feature X=values -o values", "--output"),
        (f"{RERANK} --output-nbest list", "--output-nbest"),
        ("mbr --nbest list -o list", "--output"),
        ("mbr --nbest list --weights weights -o weights", "--output"),
        ("mbr --nbest list --scores X=values -o values", "--output"),
        ("mbr 0 -o 0", "--output"),
        ("mbr 0 -o weights", "--output"),
        ("forest nbest 0 -o 0", "--output"),
        ("forest nbest 0 -o weights", "--output"),
        ("forest oracle 0 --refs ref -o ref", "--output"),
        ("oracle list --refs ref -o list", "--output"),
        ("oracle list --refs ref -o ref", "--output"),
        ("oracle list --refs refs. -o refs.1", "--output"),
        ("oracle list --refs ref --rows list", "--rows"),
        ("oracle list --scores X=values -o values", "--output"),
        ("compare A=a B=b --refs ref --html a", "--html"),
        ("compare A=a B=b --refs ref --html ref", "--html"),
        ("compare A=a B=b --refs refs. --html refs.0", "--html"),
        ("optimize --nbest list --refs refs. -o refs.1", "--output"),
        ("optimize --nbest list --refs ref --html ref", "--html"),
        ("optimize --nbest list --refs ref --init weights --html weights", "--html"),
    ],
)
def test_inputs_are_not_overwritten(
    files: dict[str, bytes], command: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(command) == 2
    expected = f"is both an input and an output. Choose another {option}\n"
    assert capsys.readouterr().err.endswith(expected)
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == files


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (f"{RERANK} -o new --output-nbest ./new", "--output and --output-nbest both name new"),
        ("oracle list --refs ref -o new --rows new", "--output and --rows both name new"),
        (
            "optimize --nbest list --refs ref -o new --html ./new",
            "--output and --html both name new",
        ),
        (
            "weights convert weights --to dense -o new --sparse-output ./new",
            "--output and --sparse-output both name new",
        ),
    ],
)
def test_outputs_are_different_files(
    files: dict[str, bytes], command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(command) == 2
    assert message in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == files


def _run(command: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(command.split())
    return int(end.value.code or 0)
