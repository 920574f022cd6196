"""Find decoders, their helper scripts, and other programs that settings name."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosesplug.decoders.description import DecodedGraphs, MosesDecoder
from mosesplug.decoders.processes.run import find_executable
from mosesplug.errors import UsageError
from mosesplug.settings.paths import FOREST


def require_program(name: str, what: str) -> Path:
    """Return the absolute path of a program, given by its path or found on ``PATH``.

    Raises:
        UsageError: it is not an executable file.
    """
    program = find_executable(name) if name else None
    if program is None:
        raise UsageError(
            f"{what} {name} is not an executable file. Give the path of a program, or make it"
            " executable: chmod +x"
        )
    return program


def find_decoder(name: str, what: str, **call: Any) -> MosesDecoder | DecodedGraphs:
    """Return a program called as Moses is, or search graphs (``forest:PATH``).

    Args:
        name: a program as ``require_program`` takes it, or ``forest:PATH``.
        call: how the program is called, by the attributes of ``MosesDecoder``.

    Raises:
        UsageError: there is no such program or path.
    """
    if not name.startswith(FOREST):
        return MosesDecoder(require_program(name, what), **call)
    place = Path(name.removeprefix(FOREST)).expanduser().absolute()
    if not place.exists():
        raise UsageError(
            f"{what} {name}: {place} does not exist. Give the working directory of a run with"
            " {--forest}, or search graphs of Moses."
        )
    return DecodedGraphs(place)


def check_transform(text: str | None) -> str | None:
    """Return the command that rewrites lists: a script, a command line, or ``bpe``.

    Raises:
        UsageError: the text is neither a file, nor a command with arguments, nor ``bpe``.
    """
    if text is None or " " in text:
        return text
    if Path(text).is_file():
        return shlex.quote(str(Path(text).absolute()))
    if text[:1] == "'" and len(shlex.split(text)) == 1:
        return text  # a quoted path, as it is returned here
    if text.lower() == "bpe":
        return "bpe"
    raise UsageError(
        f"{{--transform}} {text}: not a file. Give a script, a command with arguments, or bpe."
    )


@dataclass(frozen=True)
class HelperScripts:
    """Moses' scripts directory, if it is known.

    Attributes:
        root: the directory with ``training/``, ``generic/`` and ``ems/``, or None.
    """

    root: Path | None

    @classmethod
    def find(cls, rootdir: str | None, decoder: Path | None) -> HelperScripts:
        """Find scripts by ``--rootdir``, ``$SCRIPTS_ROOTDIR``, or beside the decoder.

        The last ones are in ``scripts`` beside the directory of the decoder.
        """
        named = rootdir or os.environ.get("SCRIPTS_ROOTDIR")
        if named:
            return cls(Path(named).absolute())
        if decoder is None:
            return cls(None)
        beside = decoder.resolve().parent.parent / "scripts"
        return cls(beside if beside.is_dir() else None)

    def optional(self, script: str) -> Path | None:
        """Return an executable script by its path under the root, or None."""
        return None if self.root is None else find_executable(str(self.root / script))

    def required(self, script: str, option: str, given: str | None = None) -> Path:
        """Return a script that ``option`` requires; ``given`` is the user's own path.

        Raises:
            UsageError: it is missing or not executable.
        """
        program = find_executable(given) if given else self.optional(script)
        if program is None:
            place = given or (f"{self.root}/{script}" if self.root else script)
            raise UsageError(
                f"{option} requires {place}, which is not an executable file. Give Moses' scripts"
                " directory by {--moses-scripts}."
            )
        return program


def choose_filter(
    scripts: HelperScripts, wanted: bool | None, given: str | None
) -> tuple[str | None, str | None]:
    """Return the filter command or None, and a note for the user or None.

    Args:
        wanted: ``--filter-phrase-table``, ``--no-filter-phrase-table``, or None for neither.
        given: ``--filtercmd``, a program with its options.

    Raises:
        UsageError: filtering was requested, but the command does not exist.
    """
    if wanted is False:
        return None, None
    if given is not None:
        words = shlex.split(given)
        if not words or find_executable(words[0]) is None:
            raise UsageError(
                f"--filtercmd={given}: not an executable file. Correct it, or use"
                " --no-filter-phrase-table."
            )
        return given, None
    script = "training/filter-model-given-input.pl"
    if wanted:
        return shlex.quote(str(scripts.required(script, "--filter-phrase-table"))), None
    program = scripts.optional(script)
    if program is not None:
        return shlex.quote(str(program)), None
    return None, (
        "the model is used unfiltered: filter-model-given-input.pl was not found. Name it with"
        " --filtercmd, or use --no-filter-phrase-table."
    )
