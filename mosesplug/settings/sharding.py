"""Settings of parallel learning: how many shards, where they run, and how their weights mix."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Literal, get_args

from mosesplug.errors import UsageError

__all__ = ["AsyncOrder", "Mixing", "Sharding", "WorkerKind", "check_address"]

WorkerKind = Literal["threads", "processes"]
Mixing = Literal["average", "weighted", "line-search", "select"]
AsyncOrder = Literal["arrival", "fixed"]


@dataclass(frozen=True)
class Sharding:
    """How many learn at once, where, and what becomes of their weights.

    Attributes:
        shards: parts of the sentences; with ``asynchronous``, mini-batches under way at once.
        mixing: of the shards' weights after each epoch: their mean (``average``), their mean by
            the number of updates (``weighted``), the best point of the metric between the old
            weights and the mean (``line-search``), or the mean on the heaviest features
            (``select``).
        keep: sparse features that ``select`` keeps.
        asynchronous: no shards, but one set of weights to which changes are applied as they come.
        async_order: as they come, or in the order of the batches, which can be repeated.
        workers: threads or processes of this machine.
        scheduler: address of a Dask scheduler, whose workers are taken instead.
        directory: a directory that all workers see, where lists are put for other processes;
            None: one for temporary files.

    Raises:
        UsageError: settings that do not go together.
    """

    shards: int = 1
    mixing: Mixing = "line-search"
    keep: int = 0
    asynchronous: bool = False
    async_order: AsyncOrder = "arrival"
    workers: WorkerKind = "threads"
    scheduler: str | None = None
    directory: str | None = None

    def __post_init__(self) -> None:
        for name, value, known in (
            ("mixing", self.mixing, get_args(Mixing)),
            ("order", self.async_order, get_args(AsyncOrder)),
            ("kind of workers", self.workers, get_args(WorkerKind)),
        ):
            if value not in known:
                raise UsageError(f"unknown {name} {value!r}; known: {', '.join(known)}")
        if self.shards < 1:
            raise UsageError(f"--shards must be at least 1, not {self.shards}")
        if self.keep < 0 or (self.keep > 0) != (self.mixing == "select"):
            raise UsageError(
                "mixing by select needs the number of sparse features to keep, and no other mixing "
                "takes one"
            )
        if self.scheduler is not None:
            check_address(self.scheduler)

    @property
    def elsewhere(self) -> bool:
        """Whether workers are other processes than this one."""
        return self.scheduler is not None or self.workers == "processes"


def check_address(address: str) -> None:
    """Refuse an address at which no scheduler could be reached; loads nothing.

    Raises:
        UsageError: the package ``distributed`` is not installed, or this is no address.
    """
    if importlib.util.find_spec("distributed") is None:
        raise UsageError(
            "a cluster of workers needs the package distributed: pip install 'mosesplug[dask]'"
        )
    if "://" not in address:
        raise UsageError(f"{address!r} is no address of a scheduler; give it as tcp://HOST:PORT")
