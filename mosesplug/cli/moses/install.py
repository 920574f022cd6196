"""``mosesplug install-tools``: write launchers with the names of Moses' programs.

``mert-moses.pl --mertdir DIRECTORY`` then finds every program that it runs. A launcher is a shell
script of two lines that starts this Python. Its ``-P`` keeps Python from importing modules from
the current directory, the one of the tuning run.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from mosesplug.errors import UsageError

__all__ = ["LAUNCHERS", "install_tools", "launcher", "write_launchers"]

LAUNCHERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "extractor": ("mosesplug.cli.moses.extractor", "main"),
        "mert": ("mosesplug.cli.moses.mert", "main"),
        "pro": ("mosesplug.cli.moses.pro", "main"),
        "kbmira": ("mosesplug.cli.moses.kbmira", "main"),
        "evaluator": ("mosesplug.cli.moses.evaluator", "main"),
        "sentence-bleu": ("mosesplug.cli.moses.sentence_bleu", "main"),
        "sentence-bleu-nbest": ("mosesplug.cli.moses.sentence_bleu", "main_nbest"),
        "hgdecode": ("mosesplug.cli.moses.hgdecode", "main"),
        "megam_i686.opt": ("mosesplug.cli.moses.megam", "main"),
        "mert-moses.pl": ("mosesplug.cli.run.mert_moses", "main"),
    }
)
"""Module and function that each launcher runs."""

_MARK = b"# launcher of mosesplug"


def install_tools(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory for the launchers; created if missing.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Replace files of these names not written by mosesplug.")
    ] = False,
) -> None:
    """Write launchers under the names of Moses' own programs.

    They take the same command lines and read and write the same files. mert-moses.pl --mertdir DIR
    runs them instead of Moses' programs; DIR/mert-moses.pl replaces the tuning script itself.
    """
    write_launchers(directory, force=force)
    print(f"{len(LAUNCHERS)} launchers in {directory.absolute()}: {', '.join(LAUNCHERS)}")
    print(f"use them with: mert-moses.pl --mertdir {shlex.quote(str(directory.absolute()))} ...")


def write_launchers(directory: Path, *, force: bool = False) -> None:
    """Write all launchers, or none.

    Args:
        directory: the directory for the launchers; created if missing.
        force: replace files of these names that mosesplug did not write.

    Raises:
        UsageError: a file or directory is in the way.
        OSError: the directory cannot be written.
    """
    _check(directory, force)
    directory.mkdir(parents=True, exist_ok=True)
    for name, (module, function) in LAUNCHERS.items():
        _put(directory / name, launcher(module, function))


def launcher(module: str, function: str) -> bytes:
    """Return a script that runs a function of a module with the script's arguments."""
    program = f"from {module} import {function}; {function}()"
    python = shlex.quote(sys.executable)
    return b'#!/bin/sh\n%b\nexec %b -P -c %b "$@"\n' % (
        _MARK,
        os.fsencode(python),
        shlex.quote(program).encode(),
    )


def _check(directory: Path, force: bool) -> None:
    """Check that every launcher can be written, before any is."""
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is not a directory: choose a directory or a new name")
    paths = [directory / name for name in LAUNCHERS]
    blocked = [path for path in paths if path.is_dir() and not path.is_symlink()]
    if blocked:
        raise UsageError(f"{blocked[0]} is a directory: remove it, or install elsewhere")
    foreign = [path for path in paths if os.path.lexists(path) and not _is_ours(path)]
    if foreign and not force:
        raise UsageError(
            f"{', '.join(path.name for path in foreign)} in {directory}: not written by mosesplug"
            " and kept. Install into another directory, or replace them with --force"
        )


def _is_ours(path: Path) -> bool:
    """Return whether a file is a launcher written by this module, and not a link."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(200).split(b"\n")[1:2] == [_MARK]


def _put(path: Path, script: bytes) -> None:
    """Write an executable atomically; replace a link, not its target."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        # Created with these permissions so that the umask applies.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777)
        with os.fdopen(descriptor, "wb") as file:
            file.write(script)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
