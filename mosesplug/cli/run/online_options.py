"""Options of both tuning commands for learning while decoding, and for held-out text."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

from mosesplug.decoders.moses import Decoder, checked_flags
from mosesplug.errors import UsageError
from mosesplug.settings.arguments import existing_decoder, existing_file, existing_references
from mosesplug.settings.configuration import HeldOut, Online, OnlineDecoder, Select

__all__ = ["held_out_of", "online_of", "selected"]


def online_of(
    online: bool, decoder: str | None, servers: int | None, strict: bool
) -> Online | None:
    """How to learn while decoding; None where that is not asked for.

    Raises:
        UsageError: an option of --online without it, or an unknown value.
    """
    if not online:
        for given, name in (
            (decoder is not None, "online-decoder"),
            (servers is not None, "online-servers"),
            (strict, "strict-online"),
        ):
            if given:
                raise UsageError(f"--{name} is of --online: give both, or neither")
        return None
    known = get_args(OnlineDecoder)
    if decoder is not None and decoder not in known:
        raise UsageError(f"--online-decoder is one of {', '.join(known)}, not {decoder}")
    if servers is not None and servers < 1:
        raise UsageError(f"--online-servers must be at least 1, not {servers}")
    if decoder == "process" and (servers is not None or strict):
        raise UsageError(
            "--online-servers and --strict-online are not for --online-decoder process"
        )
    return Online(cast(OnlineDecoder, decoder or "auto"), strict, servers or 1)


def held_out_of(
    files: tuple[str | Path, str | Path] | None,
    every: int | None,
    patience: int | None,
    online: Online | None,
    decoder: str | None = None,
    flags: str = "",
    timeout: float | None = None,
) -> HeldOut | None:
    """The held-out text; None where there is none.

    Raises:
        UsageError: an option of --heldout without it, or a file that is not there.
    """
    if files is None:
        for given, name in (
            (every, "heldout-every"),
            (patience, "patience"),
            (decoder, "heldout-decoder"),
        ):
            if given is not None:
                raise UsageError(f"--{name} is of --heldout: give both, or neither")
        return None
    if every is not None and online is None:
        raise UsageError(
            "--heldout-every counts the mini-batches of --online; without, the held-out text is"
            " translated after each iteration"
        )
    for number, name in ((every, "heldout-every"), (patience, "patience")):
        if number is not None and number < 1:
            raise UsageError(f"--{name} must be at least 1, not {number}")
    text, references = files
    program, forest = None, None
    if decoder is not None:
        program, forest = existing_decoder(decoder, "the decoder of the held-out text")
    other = None
    if program is not None:
        other = Decoder(program, () if forest else checked_flags(flags), timeout=timeout)
    return HeldOut(
        existing_file(text, "the held-out text"),
        existing_references(references),
        every or 0,
        patience or 0,
        other,
        forest,
    )


def selected(text: str | None) -> Select | None:
    """A value of --select.

    Raises:
        UsageError: there is no such value.
    """
    known = get_args(Select)
    if text is not None and text not in known:
        raise UsageError(f"--select is one of {', '.join(known)}, not {text}")
    return cast(Select | None, text)
