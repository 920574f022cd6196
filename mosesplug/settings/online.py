"""Settings of learning while decoding, of the held-out set and of monitors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mosesplug.decoders.kinds import ServerNetwork
from mosesplug.options import Opt, Parts
from mosesplug.settings.checks import check_fields
from mosesplug.settings.paths import FOREST, require_file, require_references

if TYPE_CHECKING:
    from mosesplug.decoders.description import DecoderDescription
else:  # loading the decoders takes longer than --help
    DecoderDescription = Any

OnlineDecoder = Literal["auto", "server", "process"]


@dataclass(frozen=True)
class OnlineSettings:
    """Learning while decoding: each mini-batch is decoded with the current weights."""

    decoder: Annotated[
        OnlineDecoder,
        Opt(
            "auto, server, or a process for each batch",
            "Online",
            name="online-decoder",
            metavar="HOW",
            can_be_abbreviated=True,
            note="auto uses what costs less",
            details="server keeps the decoder running, process starts one for each mini-batch. "
            "auto starts Moses for each mini-batch if its tables can be cut down to the sentences "
            "and its language model is binary or small. Otherwise it uses a server if the decoder "
            "can be one.",
        ),
    ] = "auto"
    strict: Annotated[
        bool,
        Opt(
            "Fail if a server does not follow new weights",
            "Online",
            name="strict-online",
            excludes=("online-decoder=process",),
            can_be_abbreviated=True,
            note="else it is restarted for each batch",
            details="Without it, a server whose lists depend on its starting weights is restarted "
            "for each mini-batch.",
        ),
    ] = False
    servers: Annotated[
        int,
        Opt(
            "Servers to run; each loads the model",
            "Online",
            name="online-servers",
            minimum=1,
            excludes=("online-decoder=process",),
            can_be_abbreviated=True,
        ),
    ] = 1

    network: Annotated[
        ServerNetwork,
        Opt(
            "Network of servers: own, host or auto",
            "Online",
            name="online-network",
            metavar="HOW",
            excludes=("online-decoder=process",),
            can_be_abbreviated=True,
            note="Moses' server listens on all interfaces",
            details="own runs servers in a network namespace, where only this run reaches them "
            "(Linux, if the system allows it); host is the network of all other programs; auto is "
            "own where possible.",
        ),
    ] = "auto"

    keep_lists: Annotated[
        bool,
        Opt(
            "Keep the n-best lists of all epochs in the store",
            "Online",
            note="without lists, nothing can be learned or shown from them later",
            details="--no-keep-lists removes the lists of an epoch when its result is stored. The "
            "weights are the same, and the run can be continued, but nothing can learn from its "
            "store, or look at its hypotheses.",
        ),
    ] = True

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class _HeldOutDecoder:
    """Setting of ``HeldOut.decoder``."""

    heldout_decoder: Annotated[
        str | None,
        Opt(
            "Its decoder, if not DECODER",
            "Held-out",
            metavar="DECODER",
            can_be_abbreviated=True,
            details="A program, or forest:DIR with search graphs of the held-out set. A program "
            "translates monitors, too.",
        ),
    ] = None


@dataclass(frozen=True)
class HeldOutSet:
    """A second set that is translated and scored, but not learned from.

    It serves to choose weights and to stop early.

    Attributes:
        every: mini-batches after which it is translated, and monitors with it.
        decoder: what translates it, if not the decoder of the tuning set; or None.
    """

    input: Annotated[
        Path,
        Opt(
            "Held-out set, to choose weights",
            "Held-out",
            name="heldout",
            metavar="INPUT REFS",
            second="heldout-refs",
            requires=("heldout-refs",),
            exists="file",
            what="the held-out text",
            can_be_abbreviated=True,
            details="A second set of source sentences and their references. It is translated with "
            "the starting weights and after each iteration.",
        ),
    ]
    references: Annotated[
        Path,
        Opt(
            "References of the held-out set",
            "Held-out",
            name="heldout-refs",
            metavar="REFS",
            exists="references",
            can_be_abbreviated=True,
        ),
    ]
    every: Annotated[
        int,
        Opt(
            "Translate it after N mini-batches, too",
            "Held-out",
            name="heldout-every",
            default_text="off",
            minimum=1,
            requires=("online",),
            can_be_abbreviated=True,
        ),
    ] = 0
    patience: Annotated[
        int,
        Opt(
            "Stop after N scores without improvement",
            "Held-out",
            default_text="off",
            minimum=1,
            can_be_abbreviated=True,
            details="The score with the starting weights does not count.",
        ),
    ] = 0
    decoder: Annotated[DecoderDescription | None, Parts(_HeldOutDecoder)] = None


@dataclass(frozen=True)
class Monitor:
    """A set that is translated and scored with the held-out set, but selects nothing.

    Attributes:
        decoder: its search graphs; None if a decoder translates it.
    """

    name: str
    input: Path
    references: Path
    decoder: DecoderDescription | None = None

    def __str__(self) -> str:
        graphs = () if self.decoder is None else self.decoder.words
        return f"{self.name}={','.join(map(str, (self.input, self.references, *graphs)))}"


_MONITOR_NAME = re.compile(r"[\w.+-]+")


def parse_monitors(
    monitors: Mapping[str, Any] | Iterable[str | Monitor], option: str = "monitor"
) -> tuple[Monitor, ...]:
    """Return monitors of texts ``NAME=FILE,REFS``, or of pairs of files by name.

    Args:
        option: the name of the option, for messages. Those of ``monitor`` may name search graphs,
            ``forest:DIR``, after the references.

    Raises:
        ValueError: a text or a pair has another form, or a name occurs twice.
        UsageError: a file is missing.
    """
    if isinstance(monitors, Mapping):
        parsed = [_make_monitor(name, files, option) for name, files in monitors.items()]
    else:
        parsed = [
            one if isinstance(one, Monitor) else _parse_monitor(one, option) for one in monitors
        ]
    names = [monitor.name for monitor in parsed]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name}: two monitors have this name: give each its own")
    return tuple(parsed)


def _parse_monitor(text: str, option: str) -> Monitor:
    name, equals, files = text.partition("=")
    paths = files.split(",")
    if not equals or len(paths) < 2 or not all(paths):
        raise ValueError(f"{text}: not of the form NAME=FILE,REFS, with paths without commas")
    return _make_monitor(name, paths, option)


def _make_monitor(name: object, files: Any, option: str) -> Monitor:
    if not _MONITOR_NAME.fullmatch(str(name)):
        raise ValueError(
            f"{name}: the name of a monitor has letters, digits, and any of _ . + - only"
        )
    try:
        source, references, *decoders = (str(file) for file in files)
    except (TypeError, ValueError):
        raise ValueError(f"{name}: expected (input, references), not {files!r}") from None
    what = f"{{--{option} {name}}}:"
    if decoders and (
        option != "monitor" or len(decoders) > 1 or not decoders[0].startswith(FOREST)
    ):
        form = "forest:DIR, its search graphs, or nothing" if option == "monitor" else "nothing"
        raise ValueError(
            f"{name}: after {references}, write {form}, not {','.join(decoders)}; paths must have "
            "no commas"
        )
    return Monitor(
        str(name),
        require_file(source, what),
        require_references(references, what),
        _find_graphs(decoders[0], what) if decoders else None,
    )


def _find_graphs(words: str, what: str) -> DecoderDescription:
    from mosesplug.settings.programs import find_decoder

    return find_decoder(words, what)
