"""What several files say about the package agrees."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import mosesplug

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [PROJECT["version"]]
    assert mosesplug.__version__ == PROJECT["version"]


def test_lowest_versions_are_those_of_the_requirements() -> None:
    lines = (ROOT / "tests" / "packaging" / "lowest.txt").read_text().splitlines()
    lowest = {line.replace("==", ">=") for line in lines if not line.startswith("#")}
    assert lowest == set(PROJECT["dependencies"])


def test_documented_extras_exist() -> None:
    page = (ROOT / "docs" / "howto" / "install.md").read_text()
    table = page.partition("\n## With pip\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named == set(PROJECT["optional-dependencies"])
