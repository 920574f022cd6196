"""Entries of phrase tables that cannot carry sums of sparse weights."""

from __future__ import annotations

import pytest

from formats.errors import FormatError
from mosesplug.decoders.servers.folded_entries import FoldableEntryCheck


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (b"das ||| the ||| 0.1 ||| 0-1", "point 0-1 is outside the phrase pair of 1 and 1 words"),
        (b"das ||| ||| 0.1", "the entry has no translation"),
        (b"das ||| the", "not an entry"),
        (b"das haus ||| the house ||| 0.1 ||| 0-1 1-0", "a second entry for 'das haus .* another"),
    ],
)
def test_entries_that_cannot_be_folded(entry: bytes, problem: str) -> None:
    check = FoldableEntryCheck()
    check(b"das haus ||| the house ||| 0.1 0.2 ||| 0-0 1-1 ||| 3 4", "table", 4)
    check(b"das haus ||| the house ||| 0.9 0.9 ||| 1-1 0-0", "table", 5)
    with pytest.raises(FormatError, match=f"^table:6: .*{problem}"):
        check(entry, "table", 6)
