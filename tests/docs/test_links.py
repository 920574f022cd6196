"""Links of the README and of the manual resolve, and nothing is left without a mention."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import mosesplug
from mosesplug.optimizers import algorithms
from tests.docs.examples import FENCE
from tests.docs.running import PAGES, ROOT

_LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.M)


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    """The extension that generates parts of pages."""
    path = ROOT / "docs" / "_ext" / "generated_text.py"
    spec = importlib.util.spec_from_file_location("generated_text", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def texts(generated: ModuleType) -> dict[Path, str]:
    """Every page without its code blocks, with its generated parts."""
    return {
        name: FENCE.sub("", generated.expand((ROOT / name).read_text("utf-8"))) for name in PAGES
    }


@pytest.mark.parametrize("name", PAGES, ids=str)
def test_links_resolve(name: Path, texts: dict[Path, str], generated: ModuleType) -> None:
    for target in _LINK.findall(texts[name]):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (ROOT / name.parent / path).resolve() if path else ROOT / name
        assert linked.exists(), f"{name}: {target}"
        if anchor:
            headings = _HEADING.findall(texts[linked.relative_to(ROOT)])
            anchors = {generated.anchor(heading) for heading in headings}
            assert anchor in anchors, f"{name}: {target}"


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


def test_the_readme_is_short_and_leads_to_lists_in_one_click() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(readme.splitlines()) <= 150
    assert "(docs/howto/tune-lists.md)" in readme


def test_every_public_name_is_documented_once() -> None:
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    names = " ".join(re.findall(r"<!-- generated: api (.*?) -->", page)).split()
    assert sorted(names) == sorted(set(mosesplug.__all__) - {"__version__"})
