"""Copy the package's code of a commit or of the working tree, to run it."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from tests.golden.boot import PACKAGES
from tests.golden.kernel_code import kernel_digests

__all__ = ["REPOSITORY", "Source", "copy_source", "resolve"]

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Source:
    """A checkout that can be run.

    Attributes:
        directory: it has ``mosesplug``, ``formats`` and ``pyproject.toml``.
        kernels: where compiled kernels are kept by their code; None for this process's cache.
    """

    directory: Path
    kernels: Path | None = None


def resolve(commit: str) -> str:
    """The full name of a commit."""
    words = ["git", "-C", str(REPOSITORY), "rev-parse", "--verify", f"{commit}^{{commit}}"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def copy_source(commit: str | None, directory: Path, kernels: Path) -> Source:
    """Copy a commit's code into a directory, or the working tree's with all changes (None).

    Files that are there already and the same stay as they are, and so does their bytecode.
    """
    target = directory / "source"
    files = _working_tree() if commit is None else _archive(commit)
    for path in [*target.rglob("*.py")]:
        if path.relative_to(target).as_posix() not in files:
            path.unlink()
    for name, data in files.items():
        path = target / name
        if _put(path, data):
            Path(cache_from_source(path)).unlink(missing_ok=True)
    _put(target / "kernels.json", json.dumps(kernel_digests(target)).encode())
    return Source(target, kernels)


def _put(path: Path, data: bytes) -> bool:
    """Write a file unless it has these bytes; return whether it was written."""
    if path.exists() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return True


def _working_tree() -> dict[str, bytes]:
    """The code's files by name."""
    paths = [path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")]
    paths.append(REPOSITORY / "pyproject.toml")
    return {path.relative_to(REPOSITORY).as_posix(): path.read_bytes() for path in paths}


def _archive(commit: str) -> dict[str, bytes]:
    """The code's files of a commit by name."""
    words = ["git", "-C", str(REPOSITORY), "archive", commit, *PACKAGES, "pyproject.toml"]
    archive = subprocess.run(words, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as file:
        members = [member for member in file.getmembers() if member.isfile()]
        return {member.name: file.extractfile(member).read() for member in members}
