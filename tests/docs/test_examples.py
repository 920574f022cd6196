"""Every example of the README and of the manual runs."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.clones import Clones
from tests.docs.examples import (
    FENCE,
    count_demo_sentences,
    find_blocks,
    find_exceptions,
    matches,
    split_commands,
)
from tests.docs.running import PAGES, ROOT, Page

SENTENCES = 5
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


@pytest.mark.usefixtures("figures_without_svg", "forked_launchers")
@pytest.mark.parametrize("name", PAGES, ids=str)
def test_examples_of_the_page_run_in_an_empty_directory(
    name: Path, tmp_path: Path, clones: Clones, install_plugin: Callable[[str, Path], bool]
) -> None:
    text = (ROOT / name).read_text()
    blocks = [b for b in find_blocks(text) if b.language in EXECUTABLE and b.excepted is None]
    if not blocks:
        return
    directory = tmp_path / "page"
    directory.mkdir()
    clone = clones.path(count_demo_sentences(text) or SENTENCES)
    page = Page(
        str(name),
        directory,
        os.environ | clones.environment,
        clone,
        (clones.prepare, install_plugin),
    )
    for block in blocks:
        page.run(block)


@pytest.mark.parametrize("name", PAGES, ids=str)
def test_every_example_is_run_or_excepted(name: Path) -> None:
    text = (ROOT / name).read_text("utf-8")
    blocks = find_blocks(text)
    assert {block.language for block in blocks} <= set(LANGUAGES)
    for block in blocks:
        if block.language == "console":
            split_commands(block.text)
    reasons = find_exceptions(text)
    assert all(len(reason.split()) >= 2 for reason in reasons), "say why it is not run"
    examples = [block for block in blocks if block.language in EXECUTABLE]
    excepted = [block for block in examples if block.excepted is not None]
    assert len(excepted) == len(reasons), "a reason is before no block"

    run = [block for block in examples if block.excepted is None]
    using = [block for block in run if "/path/to/mosesplug" in block.text]
    if using and name.parts[1:2] in (("howto",), ("concepts",), ("reference",)):
        start = "\n".join(text.splitlines()[: using[0].line])
        assert "**Before you start**" in start or "## Example files" in start
        assert using[0] is run[0], "files are made after an example has begun"

    # An indented block would be neither tested nor excepted.
    for before, after in itertools.pairwise(re.split(r"\n\n+", FENCE.sub("", text))):
        in_list = re.match(r"\s+|[-*] |\d+\. |: ", before.splitlines()[-1] if before else "")
        in_list = in_list or re.match(r"[-*] |\d+\. ", before)
        assert in_list or not after.startswith("    "), after


def test_pages_are_found() -> None:
    assert len(PAGES) > 30
    assert sum("console" in (ROOT / page).read_text() for page in PAGES) > 10


def test_blocks_have_their_marks() -> None:
    page = (
        "<!-- demo: 3 sentences -->\n```console\n$ x\n```\n\n"
        "<!-- not run: no c -->\n```python\ny\n```\n"
    )
    first, second = find_blocks(page)
    assert (first.language, first.text, first.line) == ("console", "$ x\n", 2)
    assert (first.excepted, second.excepted) == (None, "no c")
    assert (count_demo_sentences(page), find_exceptions(page)) == (3, ["no c"])


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
