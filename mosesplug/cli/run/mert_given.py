"""What a command line of ``mert-moses`` gives, by type; and groups of its options, read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mosesplug.cli.run.getopt import Parsed
from mosesplug.cli.run.online_options import selected
from mosesplug.cli.run.sharding_options import sharding_of
from mosesplug.errors import UsageError
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.settings.configuration import Select
from mosesplug.settings.sharding import Sharding

__all__ = ["Given", "held_out", "select", "sharding"]


@dataclass(frozen=True)
class Given:
    """The options that were given, by type."""

    parsed: Parsed

    def text(self, name: str) -> str | None:
        value = self.parsed.values.get(name)
        return None if value is None else str(value)

    def flag(self, name: str) -> bool:
        return bool(self.parsed.values.get(name, False))

    def integer(self, name: str, default: int) -> int:
        value = self.parsed.values.get(name, default)
        return int(value) if isinstance(value, int | float) else default

    def optional(self, name: str) -> int | None:
        return self.integer(name, 0) if name in self.parsed.values else None

    def seconds(self, name: str) -> float | None:
        value = self.parsed.values.get(name)
        return float(value) if isinstance(value, int | float) else None

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.parsed.values.get(name, ())
        return value if isinstance(value, tuple) else ()


def select(given: Given) -> Select | None:
    """Which weights the run ends with."""
    name = given.text("select")
    if not given.flag("return-best-dev"):
        return selected(name)
    if name not in (None, "best-dev"):
        raise UsageError("--return-best-dev and --select exclude each other: use one of the two")
    return "best-dev"


def held_out(given: Given) -> tuple[str, str] | None:
    """The held-out text and its references."""
    text, references = given.text("heldout"), given.text("heldout-refs")
    if text is None or references is None:
        if text is not references:
            raise UsageError("--heldout and --heldout-refs belong together: give both, or neither")
        return None
    return text, references


def sharding(given: Given, algorithm: str) -> Sharding | None:
    """Who learns on which sentences."""
    directory = given.text("shard-directory")
    return sharding_of(
        find_algorithm(algorithm),
        shards=given.optional("shards"),
        mixing=given.text("mixing"),
        keep=given.optional("keep"),
        asynchronous=given.flag("async"),
        async_order=given.text("async-order"),
        workers=given.text("workers"),
        scheduler=given.text("scheduler"),
        shard_directory=None if directory is None else Path(directory),
    )
