"""Install the small package of plug-ins without a package index, or write a broken one."""

from __future__ import annotations

import random
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).parent / "package"


def install_package(directory: Path) -> Path:
    """Install the package as ``pip install --target DIRECTORY`` does; return the directory."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())
    for name in project["tool"]["setuptools"]["packages"]:
        shutil.copytree(
            PACKAGE / name, directory / name, ignore=shutil.ignore_patterns("__pycache__")
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
    rng = random.Random(3)
    words = [f"s{number}" for number in range(20)]
    source = [[rng.choice(words) for _ in range(rng.randint(2, 5))] for _ in range(12)]
    reference = [[f"t{word[1:]}" for word in sentence] for sentence in source]
    (directory / "lexicon.txt").write_text(
        "".join(
            f"{word} {target}{word[1:]} {-rng.random():.2f}\n"
            for word in words
            for target in ("target", "t")
        )
    )
    for name, text in (("src", source), ("ref", reference)):
        (directory / name).write_text("".join(" ".join(line) + "\n" for line in text))
    with (directory / "lists").open("w") as lists:
        for number, sentence in enumerate(reference):
            for length in range(len(sentence), 0, -1):
                text = " ".join(sentence[:length])
                print(f"utt{number}|{text}|len={length} lm={4 * rng.random():.3f}", file=lists)
    (directory / "start.weights").write_text("Lexicon= 1\nLetters= 0.5\n")


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
