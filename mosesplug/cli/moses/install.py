"""``mosesplug install-tools``: write launchers for other toolkits' programs.

A launcher has the name of the program that it replaces. ``mert-moses.pl --mertdir DIRECTORY`` then
finds every program that it runs, and scripts that call ``$TRAVATAR_DIR/src/bin/batch-tune`` find it
in ``TRAVATAR_DIR=DIRECTORY``. A launcher is a shell script of two lines that starts this Python.
Its ``-P`` keeps Python from importing modules from the current directory, the one of the tuning
run.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from mosesplug.errors import UsageError, count_noun
from mosesplug.options import Opt
from mosesplug.plugins import TOOLKITS as PLUGINS
from mosesplug.plugins import load_plugin, plugin_names

Launchers = Mapping[str, tuple[str, str]]

LAUNCHERS: Launchers = MappingProxyType(
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
"""Module and function that each launcher of Moses' programs runs."""


@dataclass(frozen=True)
class Toolkit:
    """Programs of another toolkit that mosesplug replaces.

    Attributes:
        name: what ``--peer`` calls it.
        summary: the programs, in a few words.
        launchers: module and function of each program, by its path below the directory.
        usage: how to use the launchers; ``{}`` is the directory.
    """

    name: str
    summary: str
    launchers: Launchers
    usage: str


_MOSES = Toolkit("moses", "Moses' programs", LAUNCHERS, "mert-moses.pl --mertdir {} ...")

# The names are read from the metadata of packages; only the toolkit that is chosen is imported.
TOOLKITS = (_MOSES.name, *plugin_names(PLUGINS, (_MOSES.name,)))
"""The names of all toolkits."""

if TYPE_CHECKING:
    Peer = str
else:
    Peer = Literal[TOOLKITS]

_MARK = b"# launcher of mosesplug"


@dataclass(frozen=True)
class InstallTools:
    """Write launchers under the names of another toolkit's own programs.

    They take the same command lines and read and write the same files. mert-moses.pl --mertdir DIR
    runs them instead of Moses' programs; DIR/mert-moses.pl replaces the tuning script itself. With
    --peer travatar, TRAVATAR_DIR=DIR makes scripts run DIR/src/bin/batch-tune; --peer srilm writes
    nbest-optimize.
    """

    directory: Annotated[
        Path,
        Opt(
            "Directory for the launchers; created if missing.",
            is_positional=True,
            metavar="DIR",
            is_output=True,
        ),
    ]
    force: Annotated[bool, Opt("Replace files of these names not written by mosesplug.")] = False
    peer: Annotated[Peer, Opt("Toolkit whose programs are replaced.")] = "moses"


def install_tools(options: InstallTools) -> None:
    """Write launchers under the names of another toolkit's own programs."""
    peer, directory = options.peer, options.directory
    write_launchers(directory, force=options.force, peer=peer)
    toolkit, place = find_toolkit(peer), directory.absolute()
    launchers = toolkit.launchers
    print(f"{count_noun(len(launchers), 'launcher')} in {place}: {', '.join(launchers)}")
    print(f"use them with: {toolkit.usage.format(shlex.quote(str(place)))}")


def find_toolkit(name: str) -> Toolkit:
    """Return the toolkit with this name, mosesplug's own or that of a plug-in.

    Raises:
        UsageError: there is no such toolkit, or the plug-in cannot be used.
    """
    toolkit = _MOSES if name == _MOSES.name else load_plugin(PLUGINS, name, Toolkit)
    if toolkit is None:
        raise UsageError(f"unknown toolkit {name!r}; known: {', '.join(TOOLKITS)}")
    return toolkit


def write_launchers(directory: Path, *, force: bool = False, peer: Peer = "moses") -> None:
    """Write all launchers; none if a file or directory is in the way of one.

    Args:
        directory: the directory for the launchers; created if missing.
        force: replace files of these names that mosesplug did not write.

    Raises:
        UsageError: a file or directory is in the way, or there is no such toolkit.
    """
    launchers = find_toolkit(peer).launchers
    _check(directory, force, launchers)
    for name, (module, function) in launchers.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _put(path, launcher(module, function))


def launcher(module: str, function: str) -> bytes:
    """Return a script that runs a function of a module with the script's arguments."""
    program = f"from {module} import {function}; {function}()"
    python = shlex.quote(sys.executable)
    return b'#!/bin/sh\n%b\nexec %b -P -c %b "$@"\n' % (
        _MARK,
        os.fsencode(python),
        shlex.quote(program).encode(),
    )


def _check(directory: Path, force: bool, launchers: Launchers) -> None:
    """Check that every launcher can be written, before any is."""
    paths = [directory / name for name in launchers]
    folders = [directory, *(directory / path for name in launchers for path in Path(name).parents)]
    for folder in folders:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is not a directory: choose a directory or a new name")
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
