"""Lists with a hypothesis a line: ``id|text|lm=-3.5 tm=-1.2``."""

from collections.abc import Iterator, Sequence
from os import PathLike

from formats.decimals import parse_number
from formats.nbest.block import NBestList
from formats.nbest.entry import NBestEntry, Place
from formats.nbest.entry_blocks import collect_blocks
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds
from formats.text import open_text


def recognizes(lines: Sequence[bytes]) -> bool:
    """Return whether the first line has two single bars."""
    return lines[0].count(b"|") == 2


def parse_line(line: bytes, place: Place, ids: SentenceIds) -> NBestEntry:
    """Return the hypothesis of a line."""
    fields = line.rstrip(b"\n").split(b"|")
    if len(fields) != 3:
        raise place.error("the line has no two bars", "Write id|text|name=value ...")
    features = []
    for feature in fields[2].decode("utf-8", "replace").split():
        name, _, text = feature.partition("=")
        value = parse_number(text.encode())
        if not name or value != value:
            raise place.error(f"{feature!r} is not name=value", "Correct the value")
        features.append((name, (value,)))
    sentence = ids.number(fields[0].decode("utf-8", "surrogateescape"))
    return NBestEntry(sentence, fields[1].strip(), tuple(features))


def read_blocks(
    path: str | PathLike[str], options: ListOptions, ids: SentenceIds
) -> Iterator[NBestList]:
    """Yield blocks of whole sentences."""

    def entries() -> Iterator[tuple[int, NBestEntry]]:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, parse_line(line, Place(str(path), number), ids)

    return collect_blocks(path, entries())


PIPED = ListFormat("piped", "id|text|lm=-3.5 tm=-1.2", recognizes, read_blocks)
