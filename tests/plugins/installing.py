"""Install the small package of plug-ins without a package index, or write a broken one."""

from __future__ import annotations

import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "docs" / "examples" / "acme-tuning"


def install_package(directory: Path, source: Path = PACKAGE) -> Path:
    """Install the package as ``pip install --target DIRECTORY`` does; return the directory."""
    project = tomllib.loads((source / "pyproject.toml").read_text())
    for name in project["tool"]["setuptools"]["packages"]:
        shutil.copytree(
            source / name, directory / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    about = project["project"]
    write_metadata(directory, about["name"], about["version"], about["entry-points"])
    return directory


def forget_package() -> None:
    """Remove the imported modules of the package, so that another copy can be imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme_tuning"]:
        del sys.modules[name]


def write_data(directory: Path) -> None:
    """Write a lexicon, sentences, references, weights, and lists in the format of the package."""
    shutil.copytree(PACKAGE / "data", directory, dirs_exist_ok=True)


def write_metadata(
    directory: Path, name: str, version: str, entry_points: Mapping[str, Mapping[str, str]]
) -> None:
    """Write the ``.dist-info`` that an installed package has."""
    info = directory / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, entries in entry_points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()), ""]
    (info / "entry_points.txt").write_text("\n".join(lines))
