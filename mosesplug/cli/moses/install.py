"""``mosesplug install-tools``: Moses' program names as launchers in a directory.

``mert-moses.pl --mertdir DIRECTORY`` then finds every program that it runs. A launcher is a shell
script of two lines that starts this Python; ``-P`` keeps modules in the current directory, which
is the tuning run's, from being taken for ours.
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
"""Module and function behind each name."""

_MARK = b"# launcher of mosesplug"


def install_tools(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Where the launchers go; made if need be.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Replace files of these names that are not ours.")
    ] = False,
) -> None:
    """Write launchers under the names of Moses' own programs.

    They take the same command lines and read and write the same files:
    mert-moses.pl --mertdir DIR runs them in the place of Moses' own, and DIR/mert-moses.pl is the
    tuning script itself.
    """
    write_launchers(directory, force=force)
    print(f"{len(LAUNCHERS)} launchers in {directory.absolute()}: {', '.join(LAUNCHERS)}")
    print(f"use them with: mert-moses.pl --mertdir {shlex.quote(str(directory.absolute()))} ...")


def write_launchers(directory: Path, *, force: bool = False) -> None:
    """Write every launcher, or none.

    Args:
        directory: where they go; made if need be.
        force: replace files of these names that are not launchers of ours.

    Raises:
        UsageError: something is in the way.
        OSError: the directory cannot be written.
    """
    _check(directory, force)
    directory.mkdir(parents=True, exist_ok=True)
    for name, (module, function) in LAUNCHERS.items():
        _put(directory / name, launcher(module, function))


def launcher(module: str, function: str) -> bytes:
    """Return the script that runs a function of a module with the arguments it is given."""
    program = f"from {module} import {function}; {function}()"
    python = shlex.quote(sys.executable)
    return b'#!/bin/sh\n%b\nexec %b -P -c %b "$@"\n' % (
        _MARK,
        os.fsencode(python),
        shlex.quote(program).encode(),
    )


def _check(directory: Path, force: bool) -> None:
    """See that everything can be written before anything is.

    Raises:
        UsageError: something of another kind is in the way.
    """
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory} is not a directory: name one, or a new one")
    paths = [directory / name for name in LAUNCHERS]
    blocked = [path for path in paths if path.is_dir() and not path.is_symlink()]
    if blocked:
        raise UsageError(f"{blocked[0]} is a directory: remove it, or install elsewhere")
    foreign = [path for path in paths if os.path.lexists(path) and not _is_ours(path)]
    if foreign and not force:
        raise UsageError(
            f"{', '.join(path.name for path in foreign)} in {directory}: not written by mosesplug"
            " and left as they are; install into another directory, or replace them with --force"
        )


def _is_ours(path: Path) -> bool:
    """Return whether a file is a launcher written by this module, and not a link."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(200).split(b"\n")[1:2] == [_MARK]


def _put(path: Path, script: bytes) -> None:
    """Write an executable, all or nothing; what a link points to is left alone."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        # Opened with these permissions, so that the umask is heeded.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o777)
        with os.fdopen(descriptor, "wb") as file:
            file.write(script)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
