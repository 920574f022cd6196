"""Conformance tests of every registered list format, which plug-ins share."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from formats.errors import FormatError
from formats.nbest.registry import detect_format, find_format, split_format_name
from mosesplug.testing import LIST_FORMAT_CHECKS, ListFormatCase
from mosesplug.testing.checks import run_checks
from tests.formats.nbest.test_list_formats import VALID, read_options


@pytest.mark.parametrize("folder", dict.fromkeys(path.parent.name for path in VALID))
def test_conformance(folder: str) -> None:
    """Files of the same options are one case; test_list_formats.py rejects the invalid ones."""
    valid = defaultdict(list)
    for path in VALID:
        if path.parent.name == folder:
            valid[read_options(path), _is_recognized(path)].append(path)
    for ((name, options), is_recognized), paths in valid.items():
        case = ListFormatCase(
            find_format(paths[0], name),
            tuple(paths),
            (),
            replace(options, group_size=split_format_name(name)[1]),
            is_recognized,
        )
        run_checks(LIST_FORMAT_CHECKS, case, f"{folder} {name}")


def _is_recognized(path: Path) -> bool:
    """Whether the first lines of a valid file say its format."""
    name, _ = read_options(path)
    try:
        return detect_format(path).name == find_format(path, name).name
    except FormatError:  # columns without names
        return False
