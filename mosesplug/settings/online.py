"""Settings of learning while decoding, and of the held-out set."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mosesplug.decoders.description import DecoderDescription, ServerNetwork
from mosesplug.settings.checks import check_fields
from mosesplug.settings.declare import describe, parts, setting

__all__ = ["HeldOutSet", "OnlineDecoder", "OnlineSettings"]

OnlineDecoder = Literal["auto", "server", "process"]


@dataclass(frozen=True)
class OnlineSettings:
    """Learning while decoding: each mini-batch is decoded with the current weights."""

    decoder: OnlineDecoder = setting(
        "auto",
        name="online-decoder",
        help="auto, server, or a process for each batch",
        panel="Online",
        metavar="HOW",
        can_be_abbreviated=True,
        note="auto uses the server if the decoder supports it",
        details="server keeps the decoder running, process starts one for each mini-batch, "
        "auto uses a server if the decoder can be one.",
    )
    strict: bool = setting(
        False,
        name="strict-online",
        help="Fail if a server does not follow new weights",
        panel="Online",
        excludes=("online-decoder=process",),
        can_be_abbreviated=True,
        note="else it is restarted for each batch",
        details="Without it, a server whose lists depend on its starting weights is restarted "
        "for each mini-batch.",
    )
    servers: int = setting(
        1,
        name="online-servers",
        help="Servers to run; each loads the model",
        panel="Online",
        metavar="N",
        minimum=1,
        excludes=("online-decoder=process",),
        can_be_abbreviated=True,
    )

    network: ServerNetwork = setting(
        "auto",
        name="online-network",
        help="Network of servers: own, host or auto",
        panel="Online",
        metavar="HOW",
        excludes=("online-decoder=process",),
        can_be_abbreviated=True,
        note="Moses' server listens on all interfaces",
        details="own runs servers in a network namespace, where only this run reaches them "
        "(Linux, if the system allows it); host is the network of all other programs; auto is "
        "own where possible.",
    )

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class _HeldOutDecoder:
    """Setting of ``HeldOut.decoder``."""

    heldout_decoder: str | None = setting(
        None,
        help="Its decoder, if not DECODER",
        panel="Held-out",
        metavar="DECODER",
        can_be_abbreviated=True,
        details="A program, or forest:DIR with search graphs of the held-out set.",
    )


@dataclass(frozen=True)
class HeldOutSet:
    """A second set that is translated and scored, but not learned from.

    It serves to choose weights and to stop early.

    Attributes:
        decoder: what translates it, if not the decoder of the tuning set; or None.
    """

    input: Path = field(
        metadata=describe(
            name="heldout",
            help="Held-out set, to choose weights",
            panel="Held-out",
            metavar="INPUT REFS",
            second="heldout-refs",
            requires=("heldout-refs",),
            exists="file",
            what="the held-out text",
            can_be_abbreviated=True,
            details="A second set of source sentences and their references. It is translated with "
            "the starting weights and after each iteration.",
        )
    )
    references: Path = field(
        metadata=describe(
            name="heldout-refs",
            help="References of the held-out set",
            panel="Held-out",
            metavar="REFS",
            exists="references",
            can_be_abbreviated=True,
        )
    )
    every: int = setting(
        0,
        name="heldout-every",
        help="Translate it after N mini-batches, too",
        panel="Held-out",
        metavar="N",
        default_text="off",
        minimum=1,
        requires=("online",),
        can_be_abbreviated=True,
    )
    patience: int = setting(
        0,
        help="Stop after N scores without improvement",
        panel="Held-out",
        metavar="N",
        default_text="off",
        minimum=1,
        can_be_abbreviated=True,
        details="The score with the starting weights does not count.",
    )
    decoder: DecoderDescription | None = field(default=None, metadata=parts(_HeldOutDecoder))
