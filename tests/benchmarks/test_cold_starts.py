"""Cold starts are measured without the compiled code that lies beside the modules of a checkout."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mosesplug
from tests.benchmarks import bench_startup, compare_commits
from tests.benchmarks.bench_startup import copy_source

COUNT_COMPILED = """
from mosesplug import kernels
kernels.load_compiler()
print(kernels.count_compiled())
"""

LIST_KERNELS = """
import pathlib, sys, mosesplug
modules = pathlib.Path(mosesplug.__file__).parent
with open(sys.argv[1], "a") as file:
    print(modules, *(path.name for path in modules.rglob("*.nb[ci]")), file=file)
"""
"""Adds a line to a file: the directory of the modules, and the kernels that lie beside them."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the modules that compile kernels."""
    package = tmp_path / "checkout" / "mosesplug"
    package.mkdir(parents=True)
    for name in ("__init__.py", "kernels.py", "kernel_cache.py"):
        shutil.copy(Path(mosesplug.__file__).with_name(name), package)
    (package.parent / "formats").mkdir()
    (package.parent / "formats" / "__init__.py").touch()
    return package.parent


def test_a_cold_run_compiles(checkout: Path, tmp_path: Path) -> None:
    """Even if the kernels lie beside the modules of the checkout, where a run finds them."""

    def count_compiled(source: Path, **cache: str) -> int:
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        command = [sys.executable, "-P", "-c", COUNT_COMPILED]
        variables = environment | {"PYTHONPATH": str(source)} | cache
        return int(subprocess.run(command, env=variables, check=True, stdout=-1).stdout)

    assert count_compiled(checkout) > 0
    assert count_compiled(checkout, NUMBA_CACHE_DIR=str(tmp_path / "empty1")) == 0
    copy = copy_source(checkout, tmp_path / "copy")
    assert count_compiled(copy, NUMBA_CACHE_DIR=str(tmp_path / "empty2")) > 0


def measure_starts() -> None:
    bench_startup.main(["kernels, cold"])


def compare_working_tree() -> None:
    compare_commits.main(["HEAD", "--pairs", "1"])


@pytest.mark.parametrize("program", [measure_starts, compare_working_tree])
def test_programs_measure_without_kernels_beside_modules(
    program: Callable[[], None], checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(checkout), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Start"]):
        subprocess.run([*git, *words], check=True)
    cache = checkout / "mosesplug" / "__pycache__"
    cache.mkdir()
    (cache / "kernels._nothing-1.py311.nbi").touch()
    found = tmp_path / "found"
    command = shlex.join([sys.executable, "-P", "-c", LIST_KERNELS, str(found)])
    monkeypatch.setattr(bench_startup, "COMMANDS", {"kernels, cold": command})
    monkeypatch.setattr(compare_commits, "BENCHMARKS", {"kernels, cold": command})
    for module in (bench_startup, compare_commits):
        monkeypatch.setattr(module, "ROOT", checkout)
    program()
    lines = found.read_text().splitlines()
    assert len(lines) >= 3
    assert all(Path(line).name == "mosesplug" for line in lines)
