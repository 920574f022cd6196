"""Conformance tests of every registered list format, which plug-ins share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from formats.nbest.list_format import detect_format, find_format
from mosesplug.testing import LIST_FORMAT_CHECKS, ListFormatCase
from tests.formats.nbest.test_list_formats import INVALID, VALID, read_options


@pytest.mark.parametrize("check", LIST_FORMAT_CHECKS.values(), ids=LIST_FORMAT_CHECKS.keys())
@pytest.mark.parametrize("path", VALID, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_conformance(path: Path, check: Callable[[ListFormatCase], None]) -> None:
    name, options = read_options(path)
    found = find_format(path, name)
    invalid = [
        other
        for other in INVALID
        if other.parent == path.parent and read_options(other) == (name, options)
    ]
    recognised = detect_format(path).name == found.name
    check(ListFormatCase(found, (path,), tuple(invalid), options, recognised))
