"""Conformance tests of every registered list format, which plug-ins share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.nbest.registry import detect_format, find_format, split_format_name
from mosesplug.testing import LIST_FORMAT_CHECKS, ListFormatCase
from mosesplug.testing.checks import run_checks
from tests.formats.nbest.test_list_formats import INVALID, VALID, read_options


@pytest.mark.parametrize("path", VALID, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_conformance(path: Path) -> None:
    name, options = read_options(path)
    found = find_format(path, name)
    invalid = [
        other
        for other in INVALID
        if other.parent == path.parent and read_options(other) == (name, options)
    ]
    try:
        recognized = detect_format(path).name == found.name
    except FormatError:  # columns without names
        recognized = False
    options = replace(options, group_size=split_format_name(name)[1])
    case = ListFormatCase(found, (path,), tuple(invalid), options, recognized)
    run_checks(LIST_FORMAT_CHECKS, case, path.name)
