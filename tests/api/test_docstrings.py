"""Run the examples of the public names."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import pytest

import mosesplug
from tests.api.examples import write_example_files

ERRORS = {
    name
    for name in mosesplug.__all__
    if inspect.isclass(getattr(mosesplug, name)) and issubclass(getattr(mosesplug, name), Exception)
}
DOCUMENTED = sorted(set(mosesplug.__all__) - ERRORS - {"__version__"})


@pytest.mark.usefixtures("figures_without_svg")
@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_example_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    thing = getattr(mosesplug, name)
    tests = doctest.DocTestFinder(exclude_empty=True).find(thing, name, globs={})
    assert any(test.examples for test in tests), f"{name} has no example"
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    printed: list[str] = []
    for test in tests:
        runner.run(test, out=printed.append)
    assert not runner.failures, "".join(printed)


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_errors_are_documented(name: str) -> None:
    assert inspect.getdoc(getattr(mosesplug, name))
