"""Links of the README and of the manual resolve, and nothing is left without a mention."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

import mosesplug
from mosesplug.optimizers import algorithms
from tests.docs.examples import FENCE
from tests.docs.running import PAGES, ROOT

_LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
LONGEST = 200
"""Lines of a page of commands: three to four screens."""

_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.M)


@pytest.fixture(scope="module")
def generated() -> Iterator[ModuleType]:
    """The extension that generates parts of pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs" / "_ext")
        yield importlib.import_module("generated_text")


@pytest.fixture(scope="module")
def texts(generated: ModuleType) -> dict[Path, str]:
    """Every page without its code blocks, with its generated parts."""
    return {
        name: FENCE.sub("", generated.expand((ROOT / name).read_text("utf-8"))) for name in PAGES
    }


def test_links_resolve(texts: dict[Path, str], generated: ModuleType) -> None:
    anchors = {
        name: {generated.anchor(heading) for heading in _HEADING.findall(text)}
        for name, text in texts.items()
    }
    for name, text in texts.items():
        for target in _LINK.findall(text):
            if re.match(r"https?:", target):
                continue
            path, _, anchor = target.partition("#")
            linked = (ROOT / name.parent / path).resolve() if path else ROOT / name
            assert linked.exists(), f"{name}: {target}"
            if anchor:
                assert anchor in anchors[linked.relative_to(ROOT)], f"{name}: {target}"


def test_every_command_is_explained_by_hand(generated: ModuleType) -> None:
    pages = "\n".join((ROOT / name).read_text("utf-8") for name in PAGES)
    names = [words[0] for words in generated.list_commands() if len(words) == 1]
    assert len(names) > 15
    missing = [name for name in names if not re.search(rf"mosesplug {name}\b|`{name}`", pages)]
    assert not missing


def test_every_algorithm_has_a_section(generated: ModuleType) -> None:
    for name, entry in algorithms().items():
        path = ROOT / "docs" / "algorithms" / generated.family_page(entry.family)
        section = path.read_text("utf-8").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert "**When to use it.**" in section, name
        assert f"<!-- generated: algorithm {name} -->" in section, name
        assert "$$" in section or name == "pro+mert", name


def test_every_algorithm_has_been_measured(generated: ModuleType) -> None:
    measured = generated.read_measured(
        (ROOT / "docs" / "benchmarks" / "learners.md").read_text("utf-8")
    )
    assert set(measured) == set(algorithms())
    assert measured["mira"][2:] == ["64.93", "64.99"]


def test_the_figure_of_sizes_shows_its_table(generated: ModuleType) -> None:
    figure = ElementTree.fromstring(
        generated.expand("<!-- generated: scale-figure -->").replace("&nbsp;", " ")
    )
    table = (ROOT / "docs" / "benchmarks" / "scale.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) % \| (\w+) \|(.*)\|$", table, re.M)
    assert len(rows) == 12
    for chart, column in zip(figure.iter("svg"), (1, 2, 3), strict=True):
        places = {
            circle.find("title").text: (float(circle.get("cx")), -float(circle.get("cy")))
            for circle in chart.iter("circle")
        }
        values = {}
        for size, step, cells in rows:
            value = float(cells.split("|")[column].replace(",", ""))
            values[f"{step}: {int(size):,g}, {value:,g}"] = (int(size), value)
        assert places.keys() == values.keys()
        for one, other in itertools.permutations(values, 2):
            for axis in (0, 1):
                if values[one][axis] > 1.05 * values[other][axis]:
                    assert places[one][axis] > places[other][axis], (one, other)


def test_the_readme_is_short_and_leads_to_lists_in_one_click() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(readme.splitlines()) <= 150
    assert f"It has {len(algorithms())} algorithms" in readme
    assert "(docs/howto/tune-lists.md)" in readme


def test_every_public_name_is_documented_once() -> None:
    names = find_marked("api", "api")
    assert sorted(names) == sorted(set(mosesplug.__all__) - {"__version__"})


def test_every_command_is_on_one_page(generated: ModuleType) -> None:
    names = find_marked("reference/commands", "commands")
    assert sorted(names) == sorted("/".join(words) for words in generated.list_commands())


@pytest.mark.parametrize("folder", ["api", "reference/commands"])
def test_generated_pages_are_short(folder: str, generated: ModuleType) -> None:
    for page in (ROOT / "docs" / folder).glob("*.md"):
        lines = generated.expand(page.read_text("utf-8")).splitlines()
        assert len(lines) <= LONGEST, f"split {page.name}"


def find_marked(folder: str, generator: str) -> list[str]:
    """Return the arguments of a generator's marks on the pages of a folder."""
    texts = [page.read_text("utf-8") for page in sorted((ROOT / "docs" / folder).glob("*.md"))]
    marks = re.findall(rf"<!-- generated: {generator} (.*?) -->", "\n".join(texts))
    return " ".join(marks).split()


def test_every_promise_of_reliability_names_its_tests() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    _, *sections = re.split(r"^## ", text, flags=re.M)
    for section in sections:
        title = section.partition("\n")[0]
        found = re.search(r"^Tests: (.+?)\.$", section, re.M | re.S)
        assert found, f"{title}: its tests are not named"
        names = re.findall(r"`([^`]+)`", found[1])
        assert names
        for name in names:
            path, _, function = name.partition("::")
            assert (ROOT / path).is_file(), f"{title}: {name}"
            assert f"def {function}" in (ROOT / path).read_text("utf-8"), f"{title}: {name}"
