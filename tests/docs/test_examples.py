"""Every example of the README and of the manual runs."""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.docs.examples import FENCE, find_blocks, find_marks, matches, split_commands
from tests.docs.running import PAGES, ROOT, Page

EXECUTABLE = ("console", "python")
LANGUAGES = (
    *EXECUTABLE,
    "text",
    "ini",
    "toml",
    "json",
    "{literalinclude}",
    "{toctree}",
    "{eval-rst}",
)


@pytest.mark.parametrize("name", PAGES, ids=str)
def test_examples_of_the_page_run(
    name: Path,
    tmp_path: Path,
    environment: Mapping[str, str],
    sources: Mapping[str, Callable[[Path], None]],
    request: pytest.FixtureRequest,
) -> None:
    blocks = [b for b in find_blocks((ROOT / name).read_text()) if b.language in EXECUTABLE]
    blocks = [b for b in blocks if b.excepted is None]
    if not blocks:
        return
    directory = tmp_path / "page"
    if "empty" in blocks[0].needs:
        directory.mkdir()
    else:
        shutil.copytree(request.getfixturevalue("system"), directory)
    page = Page(str(name), directory, os.environ | environment, sources)
    for block in blocks:
        page.run(block)


@pytest.mark.parametrize("name", PAGES, ids=str)
def test_blocks_and_marks_are_known(name: Path, sources: Mapping[str, object]) -> None:
    text = (ROOT / name).read_text()
    blocks = find_blocks(text)
    assert {block.language for block in blocks} <= set(LANGUAGES)
    assert {need for block in blocks for need in block.needs} <= set(sources)
    for block in blocks:
        if block.language == "console":
            split_commands(block.text)
    reasons = [reason for kind, reason in find_marks(text) if kind == "not run"]
    assert all(len(reason.split()) >= 2 for reason in reasons), "say why it is not run"
    used = [b for b in blocks if b.excepted is not None and b.language in EXECUTABLE]
    assert len(used) == len(reasons), "a reason is before no block"


@pytest.mark.parametrize("name", PAGES, ids=str)
def test_code_is_fenced(name: Path) -> None:
    # An indented block would be neither tested nor excepted.
    paragraphs = re.split(r"\n\n+", FENCE.sub("", (ROOT / name).read_text("utf-8")))
    for before, text in itertools.pairwise(paragraphs):
        in_list = re.match(r"\s+|[-*] |\d+\. |: ", before.splitlines()[-1] if before else "")
        in_list = in_list or re.match(r"[-*] |\d+\. ", before)
        assert in_list or not text.startswith("    "), text


def test_pages_are_found() -> None:
    assert len(PAGES) > 30
    assert sum("console" in (ROOT / page).read_text() for page in PAGES) > 10


def test_blocks_have_their_marks() -> None:
    page = (
        "<!-- needs: a b -->\n```console\n$ x\n```\n\n<!-- not run: no c -->\n```python\ny\n```\n"
    )
    first, second = find_blocks(page)
    assert (first.language, first.text, first.line) == ("console", "$ x\n", 2)
    assert (first.needs, first.excepted) == (("a", "b"), None)
    assert (second.needs, second.excepted) == (("a", "b"), "no c")


def test_commands_continue_after_a_backslash() -> None:
    first, second = split_commands("$ a \\\n    b\nout\nmore\n$ c\n")
    assert (first.words, first.output) == ("a \\\n    b", ("out", "more"))
    assert (second.words, second.output) == ("c", ())
    with pytest.raises(ValueError, match="begins with a command"):
        split_commands("out\n")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("BLEU 0.5", "note\nBLEU  0.6123\n", True),
        ("BLEU 0.5\nTER 0.1", "BLEU 0.5\nCHRF 0.3\nTER 0.1\n", False),
        ("BLEU 0.5\n...\nTER 0.1", "BLEU 0.5\nCHRF 0.3\nTER 0.1\n", True),
        ("a ... d", "a b c d", True),
        ("LM ▁▂▃ 1", "LM █▁ 2", True),
        ("BLEU", "CHRF", False),
    ],
)
def test_output_is_compared_loosely(shown: str, printed: str, same: bool) -> None:
    assert matches(tuple(shown.splitlines()), printed) is same
