"""The examples of a Markdown page: fenced ``console`` and ``python`` blocks.

HTML comments say how they are tested:

- ``<!-- demo: N sentences -->`` is the size of the demo system, once on a page;
- ``<!-- not run: REASON -->`` excepts the next block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "FENCE",
    "Block",
    "Command",
    "count_demo_sentences",
    "find_blocks",
    "find_exceptions",
    "matches",
    "split_commands",
]

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)[^\n]*\n(?P<text>.*?)^ *```$", re.M | re.S)
_MARK = re.compile(r"<!-- not run:\s*(.*?)\s*-->", re.S)
_DEMO = re.compile(r"<!-- demo: (\d+) sentences -->")
_NUMBER = re.compile(r"[-+]?\d[\d.,:]*(e[-+]?\d+)?")
_SPARKS = re.compile("[▁▂▃▄▅▆▇█]+")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        language: the word after the fence.
        text: its lines.
        line: number of the fence's line, from 1.
        excepted: why it is not run; None if it is.
    """

    language: str
    text: str
    line: int
    excepted: str | None


@dataclass(frozen=True)
class Command:
    """A command of a ``console`` block.

    Attributes:
        words: the shell command, of one or several lines.
        output: the lines that the page shows below it.
    """

    words: str
    output: tuple[str, ...]


def count_demo_sentences(page: str) -> int | None:
    """Return the size of the demo system that a page asks for; None if it asks for none."""
    match = _DEMO.search(page)
    return int(match[1]) if match else None


def find_exceptions(page: str) -> list[str]:
    """Return the reason of every block that is not run."""
    return _MARK.findall(re.sub(r"`[^`\n]*`", "", FENCE.sub("", page)))


def find_blocks(page: str) -> list[Block]:
    """Return the blocks of a page in order."""
    blocks = []
    end = 0
    for match in FENCE.finditer(page):
        excepted = None
        for mark in _MARK.finditer(re.sub(r"`[^`\n]*`", "", page[end : match.start()])):
            excepted = mark[1]
        end = match.end()
        line = page.count("\n", 0, match.start()) + 1
        blocks.append(Block(match["language"], match["text"], line, excepted))
    return blocks


def split_commands(text: str) -> list[Command]:
    """Return the commands of a ``console`` block.

    Raises:
        ValueError: the block does not begin with a command.
    """
    commands: list[tuple[list[str], list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(([line[2:]], []))
        elif not commands:
            raise ValueError(f"a console block begins with a command, not with {line!r}")
        elif not commands[-1][1] and commands[-1][0][-1].endswith("\\"):
            commands[-1][0].append(line)
        else:
            commands[-1][1].append(line)
    return [Command("\n".join(words), tuple(output)) for words, output in commands]


def matches(shown: tuple[str, ...], printed: str) -> bool:
    """Return whether output has the shown lines, in their order.

    Numbers, blanks and sparklines may differ. ``...`` stands for any text, within a line or as a
    line; other lines of the output must not be left out between two shown lines.
    """
    pattern = re.escape(_mask("\n".join(shown)))
    return bool(re.search(pattern.replace(re.escape("..."), r"[\s\S]*"), _mask(printed)))


def _mask(text: str) -> str:
    """Return the text with the parts that may differ made the same."""
    masked = _SPARKS.sub("#", _NUMBER.sub("#", text))
    return "\n".join(" ".join(line.split()) for line in masked.splitlines())
