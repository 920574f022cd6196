"""Check what a wheel and an sdist contain, or print the requirements of the package.

usage: check_distributions.py DIST DIRECT       DIST: sdist, and the wheel that was built from it;
                                                DIRECT: the wheel that was built from the source
       check_distributions.py --requirements
"""

from __future__ import annotations

import email
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("formats", "mosesplug")
IN_SDIST = (
    *("CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml"),
    *("docs/architecture.md", "moses-config/demo/tune_demo.py"),
)


def main() -> None:
    """Check, or print; end with an error that names the difference."""
    if sys.argv[1:] == ["--requirements"]:
        print("\n".join(_project()["dependencies"]))
        return
    dist, direct = map(Path, sys.argv[1:])
    [sdist], [wheel], [other] = dist.glob("*.tar.gz"), dist.glob("*.whl"), direct.glob("*.whl")
    files = _read_wheel(wheel)
    if files != _read_wheel(other):
        sys.exit(f"the wheel that was built from {sdist.name} differs from that of the source")
    _check_wheel(files)
    _check_sdist(sdist)


def _project() -> dict[str, list[str]]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project: dict[str, list[str]] = tomllib.load(file)["project"]
    return project


def _read_wheel(path: Path) -> dict[str, bytes]:
    """Return the content of each file."""
    with zipfile.ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def _check_wheel(files: dict[str, bytes]) -> None:
    """A wheel has the modules, the markers of typed packages, metadata, and nothing else."""
    expected = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for pattern in ("*.py", "*.js", "*.css", "py.typed")
        for path in (ROOT / package).rglob(pattern)
    }
    found = {name for name in files if ".dist-info/" not in name}
    if found != expected:
        sys.exit(f"the wheel lacks or should not have: {sorted(found ^ expected)}")
    [metadata] = (content for name, content in files.items() if name.endswith("/METADATA"))
    fields = email.message_from_bytes(metadata)
    if fields["License-Expression"] != "MIT" or fields["License-File"] != "LICENSE":
        sys.exit("the wheel does not name its license")


def _check_sdist(path: Path) -> None:
    """An sdist also has documentation and the demo, but no tests and nothing compiled."""
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    missing = [name for name in IN_SDIST if name not in names]
    stray = [name for name in names if name.startswith("tests/") or "__pycache__" in name]
    if missing or stray:
        sys.exit(f"the sdist lacks {missing} and should not have {stray}")


if __name__ == "__main__":
    main()
